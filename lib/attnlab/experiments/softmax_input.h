#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attnlab/core/tensor.h"
#include "attnlab/experiments/softmax.h"

namespace attnlab {

// The logits of the softmax command: the numbers as [n], or the tensor of x. Throws InputError when
// not exactly one of them is given, or x has no axis.
AnyTensor read_softmax_input(const SoftmaxOptions& options, std::vector<std::string>& notes);

// `shape` without its last axis.
Shape leading_axes(const Shape& shape);

// The rows along the last axis of a tensor that outlives them.
template <class T>
struct RowsOf {
  explicit RowsOf(const Tensor<T>& tensor)
      : shape(tensor.shape()), count(leading().size()), values(tensor.values()) {}

  Shape leading() const { return leading_axes(shape); }
  std::span<const T> row(Index i) const {
    const auto n = static_cast<std::size_t>(shape[-1]);
    return values.subspan(static_cast<std::size_t>(i) * n, n);
  }

  Shape shape;
  Index count;
  std::span<const T> values;
};

// The shape [.., n, n] of the Jacobians of rows [.., n]. Throws InputError when it has too many
// axes, or when `count` Jacobians in all do not fit the memory there is.
Shape jacobian_shape(const Shape& rows, std::size_t element_bytes, Index count);

// A matrix that is filled part by part, or not kept at all.
template <class T>
class Kept {
 public:
  Kept() = default;
  Kept(bool kept, const Shape& shape) {
    if (kept) tensor_ = Tensor<T>::uninitialized(shape);
  }

  explicit operator bool() const { return tensor_.has_value(); }
  // Part i, where parts are as long as `values`.
  void put(Index i, std::span<const T> values) {
    if (!tensor_) return;
    std::copy(values.begin(), values.end(),
              tensor_->data() + i * static_cast<Index>(values.size()));
  }
  void put(Index i, T value) { put(i, std::span<const T>(&value, 1)); }
  std::optional<AnyTensor> take() {
    if (!tensor_) return std::nullopt;
    return AnyTensor(std::move(*tensor_));
  }

 private:
  std::optional<Tensor<T>> tensor_;
};

}  // namespace attnlab
