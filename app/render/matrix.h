#pragma once

#include <string>
#include <string_view>

#include "attnlab/core/tensor.h"
#include "render/style.h"

namespace attnlab {

// One matrix as text: aligned columns, one format for all of it. As in NumPy, of more than 1000
// elements only the first and last three of every axis are shown; where the columns do not fit the
// width, as many of the first and last as do. Tensors of rank 3 and 4 are shown matrix by matrix,
// each under its label ("head 0"). Rows and columns are named where the style has names for the
// axes of the `declared` shape ("[.., heads, n, m]"). Every line is indented by two columns.
std::string matrix_text(const AnyTensor& tensor, std::string_view declared, const Style& style);
std::string matrix_text(const AnyTensor& tensor, const Style& style);

}  // namespace attnlab
