#include "attnlab/attention/kernel/values.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "attnlab/attention/kernel/largest_magnitude.h"

namespace attnlab {
template <class T>
Values<T>::Values(const Tensor<T>& v) : v_(v), largest_(largest_magnitude(v.values())) {
  if (std::isfinite(largest_)) return;
  finite_ = v;
  const Index rows = v.shape()[-2];
  const Index columns = v.shape()[-1];
  non_finite_rows_.resize(static_cast<std::size_t>(v.shape().matrices()));
  for (Index row = 0; row < v.shape().matrices() * rows; ++row) {
    const std::span<T> values(finite_->data() + row * columns, static_cast<std::size_t>(columns));
    if (std::isfinite(largest_magnitude(std::span<const T>(values)))) continue;
    non_finite_rows_[static_cast<std::size_t>(row / rows)].push_back(row % rows);
    std::replace_if(
        values.begin(), values.end(), [](T value) { return !std::isfinite(value); }, T(0));
  }
  largest_ = largest_magnitude(std::as_const(*finite_).values());
}

template class Values<float>;
template class Values<double>;

}  // namespace attnlab
