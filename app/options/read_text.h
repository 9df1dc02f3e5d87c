#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

inline constexpr std::string_view kCommandLine = "command line";

// Sets the option to what the command line gave: one text, or several for an option that repeats
// or a list given without its flag. Throws InputError naming the flag. Ranges are checked later,
// once for all sources.
void read_text(const OptionRef& option, const std::vector<std::string>& texts);

// The numbers of `items` as a tensor of rank 1, int64 when all are integers and float64 otherwise,
// or nothing when one is no number.
std::optional<AnyTensor> list_tensor(const std::vector<std::string>& items, bool non_finite);

// What names a choice wrongly, in words: "need a, b or c, did you mean a?".
std::string choice_rule(std::string_view text, std::span<const std::string_view> names,
                        const OptionRef& option);

}  // namespace attnlab
