#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/tensor.h"
#include "render/style.h"

namespace attnlab {

// The names of the axes of a matrix, outermost first, out of its declared shape
// ("[.., heads, n, m]"), matched from the last axis. Axes that ".." stands for are "batch"; those
// that nothing is said of are "". Without a declaration a tensor of rank 3 has heads and one of
// rank 4 batch and heads.
std::vector<std::string> axis_names(std::string_view declared, int rank);

// The style for a matrix of the declared shape: row names for its queries (n), column names for
// its keys (m), wherever these stand, and no names where the lengths do not agree. Without a
// declaration the lengths decide.
Style matrix_style(Style style, std::string_view declared, const Shape& shape);

// "batch 1, head 0": which of the matrices over the last two axes `index` is. Axes of length 1 are
// left out.
std::string matrix_label(const std::vector<std::string>& axes, const Shape& shape, Index index);

}  // namespace attnlab
