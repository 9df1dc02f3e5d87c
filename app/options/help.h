#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

// What stands for the option's value in the help: "FILE", "N,...", "top-left|bottom-right"; empty
// for a flag without one.
std::string metavar(const OptionRef& option);

// The help of a command: usage, summary, options by heading with range, choices and default (the
// values they hold now), the matrices of its results, examples. Lines are at most `width` columns
// where words allow it.
std::string help_text(std::string_view command, std::string_view summary, std::string_view examples,
                      const std::vector<OptionRef>& options, const std::vector<ResultRef>& results,
                      int width);

}  // namespace attnlab
