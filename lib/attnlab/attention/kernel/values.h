#pragma once

#include <optional>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// V, or another tensor [.., rows, d], so that a matrix product with weights of 0 forgets a masked
// value whatever it is: 0 * NaN is NaN, so NaN and infinities are set to 0 for the product and
// handed out apart, to be added to the rows that do see them. A V without any is used as it is.
template <class T>
class Values {
 public:
  explicit Values(const Tensor<T>& v);

  const Shape& shape() const { return v_.shape(); }
  // V with 0 for NaN and the infinities.
  const Tensor<T>& finite() const { return finite_ ? *finite_ : v_; }
  // The largest magnitude of the finite ones.
  T largest() const { return largest_; }
  // The V that was given.
  const Tensor<T>& given() const { return v_; }
  // Rows of the i-th matrix that hold NaN or an infinity, in order.
  const std::vector<Index>& non_finite_rows(Index i) const {
    static const std::vector<Index> kNone;
    return non_finite_rows_.empty() ? kNone : non_finite_rows_[static_cast<std::size_t>(i)];
  }

 private:
  const Tensor<T>& v_;
  T largest_ = 0;
  std::optional<Tensor<T>> finite_;
  std::vector<std::vector<Index>> non_finite_rows_;
};

}  // namespace attnlab
