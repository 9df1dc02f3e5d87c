#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/compare.h"
#include "render/style.h"

namespace attnlab {

// The rows, how many elements have errors of which decade (as bars where there is one row), and of
// a case the columns that speak of it and the verdict.
std::optional<std::string> compare_table(const CompareOptions& options, const CompareResult& result,
                                         const std::vector<std::string>& shown, const Style& style);

}  // namespace attnlab
