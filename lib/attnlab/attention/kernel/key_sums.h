#pragma once

#include <algorithm>
#include <optional>

#include "attnlab/attention/kernel/backward_tiled.h"
#include "attnlab/core/memory.h"
#include "attnlab/core/tensor.h"

namespace attnlab {

// A gradient [batch, kv_heads, m, width] that several shares of each head add to, apart from each
// other: the first in the gradient itself where its rows are whole vectors, the others in memory
// of their own. Throws InputError when there is none.
template <class T>
class KeySums {
 public:
  KeySums(std::optional<Tensor<T>>& gradient, Index shares) : gradient_(gradient) {
    if (!gradient) return;
    const Shape& shape = gradient->shape();
    stride_ = (shape[3] + kBackwardPad<T> - 1) / kBackwardPad<T> * kBackwardPad<T>;
    direct_ = stride_ == shape[3] ? 1 : 0;
    apart_ = shares - direct_;
    const Shape sums{shape.matrices(), apart_, shape[2], stride_};
    require_memory(static_cast<std::uint64_t>(sums.size()) * sizeof(T), "gradients of the keys");
    sums_ = Tensor<T>::uninitialized(sums);
  }

  // Where share `share` of a matrix adds up its rows, stride() apart, all 0 now; null without a
  // gradient.
  T* start(Index matrix, Index share) {
    if (!gradient_) return nullptr;
    if (share < direct_) return gradient_->matrix(matrix).data();
    auto sums = sums_.matrix(matrix * apart_ + share - direct_);
    sums.setZero();
    return sums.data();
  }
  Index stride() const { return stride_; }

  // Adds up the shares of a matrix, in order.
  void add_up(Index matrix) {
    if (!gradient_) return;
    auto total = gradient_->matrix(matrix);
    for (Index x = 0; x < apart_; ++x) {
      total += sums_.matrix(matrix * apart_ + x).leftCols(total.cols());
    }
  }

 private:
  std::optional<Tensor<T>>& gradient_;
  Index stride_ = 0;
  Index direct_ = 0;  // 1 when the first share needs no memory
  Index apart_ = 0;
  Tensor<T> sums_;  // [matrices, apart, m, stride]
};

}  // namespace attnlab
