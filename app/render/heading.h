#pragma once

#include <string>

#include "attnlab/core/describe.h"

namespace attnlab {

// "weights = softmax(masked_scores)   [2, 5, 5] float32": what stands over a matrix.
inline std::string shape_text(const AnyTensor& matrix) {
  return matrix.shape().str() + " " + std::string(dtype_name(matrix.dtype()));
}

inline std::string matrix_heading(const ResultRef& result, const AnyTensor& matrix) {
  std::string text(result.name);
  if (!result.formula.empty()) text += " = " + std::string(result.formula);
  return text + "   " + shape_text(matrix);
}

}  // namespace attnlab
