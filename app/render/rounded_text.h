#pragma once

#include <span>
#include <string>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Numbers for people. Those for programs are exact: attnlab/io/number_text.h.

// `value` rounded to `digits` significant digits, or its exact text when that is shorter: 0.09003,
// 16, 1.384e-87. Integers up to 1e8 keep all their digits. NaN, inf or -inf.
std::string significant_text(double value, int digits);

// The same for element i of a tensor: 16- and 32-bit numbers are as short as their type allows
// (0.1, not 0.1000).
std::string significant_text(const AnyTensor& tensor, Index i, int digits);

// One format for all elements of a matrix, after NumPy: fixed point with as many decimals as the
// largest element has significant digits, a few more when the smallest would else round to zero,
// and none that every element does without; scientific when that would take too many. Zero is a
// bare 0, so that what is masked differs from what is small, and a nonzero element never shows
// as zero.
class MatrixFormat {
 public:
  // Fits `elements` (row-major indices) of `tensor`.
  MatrixFormat(const AnyTensor& tensor, std::span<const Index> elements, int digits);

  // Columns of every cell.
  int width() const { return left_ + right_; }
  // Element i, aligned at the decimal point with all others.
  std::string cell(Index i) const;

 private:
  std::string text(Index i) const;

  const AnyTensor& tensor_;
  bool scientific_ = false;
  int decimals_ = 0;
  int left_ = 0, right_ = 0;  // columns before the decimal point, and from it on
};

}  // namespace attnlab
