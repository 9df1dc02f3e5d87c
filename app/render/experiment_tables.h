#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/variance.h"
#include "render/style.h"

namespace attnlab {

// The results of experiments for people: of their many columns those that tell the story, then what
// was found. All columns are in JSON, jsonl and CSV.
std::optional<std::string> variance_table(const VarianceOptions& options,
                                          const VarianceResult& result,
                                          const std::vector<std::string>& shown,
                                          const Style& style);

}  // namespace attnlab
