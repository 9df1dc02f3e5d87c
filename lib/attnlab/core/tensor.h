#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "attnlab/core/buffer.h"
#include "attnlab/core/dtype.h"

namespace attnlab {

// The lengths of up to four axes, outermost first: [batch, heads, n, d]. Rank 0 is one number.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<Index> lengths) : Shape(std::span(lengths.begin(), lengths.size())) {}
  // Throws InputError when there are more than kMaxRank lengths, one is negative, or their product
  // does not fit an Index.
  explicit Shape(std::span<const Index> lengths);

  int rank() const { return rank_; }
  // The length of an axis; negative axes count from the last, as in NumPy.
  Index operator[](int axis) const {
    return lengths_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)];
  }
  // Elements in all.
  Index size() const;
  // Matrices [rows, columns] of the last two axes: the product of the axes before them.
  Index matrices() const;
  // "[2, 3]"
  std::string str() const;
  // The lengths, outermost first.
  std::span<const Index> axes() const { return {lengths_.data(), static_cast<std::size_t>(rank_)}; }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<Index, kMaxRank> lengths_{};
  int rank_ = 0;
};

// Bytes of `count` elements, or nothing when the product overflows.
std::optional<std::uint64_t> checked_bytes(std::span<const std::uint64_t> lengths,
                                           std::uint64_t element_bytes);

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixMap = Eigen::Map<Matrix<T>>;
template <class T>
using ConstMatrixMap = Eigen::Map<const Matrix<T>>;

// A row-major contiguous array of rank 0 to 4 that owns its elements.
template <class T>
class Tensor {
 public:
  Tensor() : Tensor(Shape{0}) {}
  // All zero.
  explicit Tensor(const Shape& shape) : Tensor(shape, T(0)) {}
  Tensor(const Shape& shape, T fill) : Tensor(Uninitialized{}, shape) {
    std::fill_n(data(), size(), fill);
  }
  // `values` row by row; their number must be the shape's size.
  Tensor(const Shape& shape, std::initializer_list<T> values) : Tensor(Uninitialized{}, shape) {
    eigen_assert(static_cast<Index>(values.size()) == size());
    std::copy(values.begin(), values.end(), data());
  }
  Tensor(const Tensor& other) : Tensor(Uninitialized{}, other.shape_) {
    std::copy_n(other.data(), size(), data());
  }
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;
  ~Tensor() = default;

  // Elements are indeterminate: for code that writes every one of them.
  static Tensor uninitialized(const Shape& shape) { return Tensor(Uninitialized{}, shape); }
  // The elements that lie in `buffer` from its start on.
  static Tensor in(Buffer buffer, const Shape& shape) {
    eigen_assert(static_cast<std::size_t>(shape.size()) * sizeof(T) <= buffer.bytes());
    return Tensor(Uninitialized{}, shape, std::move(buffer));
  }

  const Shape& shape() const { return shape_; }
  Index size() const { return shape_.size(); }
  T* data() { return static_cast<T*>(buffer_.data()); }
  const T* data() const { return static_cast<const T*>(buffer_.data()); }
  std::span<T> values() { return {data(), static_cast<std::size_t>(size())}; }
  std::span<const T> values() const { return {data(), static_cast<std::size_t>(size())}; }
  T& operator[](Index i) { return data()[i]; }
  const T& operator[](Index i) const { return data()[i]; }

  // The i-th matrix over the last two axes, counted in row-major order of the axes before them:
  // head h of batch entry b in [batch, heads, n, d] is matrix(b * heads + h). Rank 2 or more.
  MatrixMap<T> matrix(Index i = 0) {
    return {data() + i * shape_[-2] * shape_[-1], shape_[-2], shape_[-1]};
  }
  ConstMatrixMap<T> matrix(Index i = 0) const {
    return {data() + i * shape_[-2] * shape_[-1], shape_[-2], shape_[-1]};
  }

  // The same elements under another shape of the same size.
  Tensor reshaped(const Shape& shape) && {
    eigen_assert(shape.size() == size());
    shape_ = shape;
    return std::move(*this);
  }

 private:
  // Bytes become elements by being written; they end without notice.
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= alignof(std::max_align_t));

  struct Uninitialized {};
  Tensor(Uninitialized tag, const Shape& shape)
      : Tensor(tag, shape, Buffer(static_cast<std::size_t>(shape.size()), sizeof(T))) {}
  Tensor(Uninitialized, const Shape& shape, Buffer buffer)
      : shape_(shape), buffer_(std::move(buffer)) {}

  Shape shape_;
  Buffer buffer_;
};

// A tensor whose element type is known only at run time, as read from a file.
class AnyTensor {
 public:
  using Variant = std::variant<Tensor<bool>, Tensor<std::int8_t>, Tensor<std::int16_t>,
                               Tensor<std::int32_t>, Tensor<std::int64_t>, Tensor<std::uint8_t>,
                               Tensor<std::uint16_t>, Tensor<std::uint32_t>, Tensor<std::uint64_t>,
                               Tensor<Float16>, Tensor<BFloat16>, Tensor<float>, Tensor<double>>;

  AnyTensor() = default;
  template <class T>
  AnyTensor(Tensor<T> tensor)  // NOLINT(google-explicit-constructor): an AnyTensor is any of these
      : tensor_(std::move(tensor)) {}

  // The alternatives stand in the order of DType.
  DType dtype() const { return static_cast<DType>(tensor_.index()); }
  const Shape& shape() const {
    return std::visit([](const auto& t) -> const Shape& { return t.shape(); }, tensor_);
  }
  Index size() const { return shape().size(); }

  // The tensor as stored; T must be its type.
  template <class T>
  const Tensor<T>& get() const {
    return std::get<Tensor<T>>(tensor_);
  }
  template <class T>
  Tensor<T>& get() {
    return std::get<Tensor<T>>(tensor_);
  }

  // Calls f with the typed tensor.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), tensor_);
  }

  // The same values as T, each rounded to nearest: a copy, or the tensor itself where it is of that
  // type and no longer needed.
  template <class T>
  Tensor<T> cast() const&;
  template <class T>
  Tensor<T> cast() && {
    if (auto* same = std::get_if<Tensor<T>>(&tensor_)) return std::move(*same);
    return std::as_const(*this).template cast<T>();
  }
  // The same values as another dtype.
  AnyTensor cast(DType dtype) const&;
  AnyTensor cast(DType dtype) && {
    return dtype == this->dtype() ? std::move(*this) : std::as_const(*this).cast(dtype);
  }

  // Element i in row-major order, as a double (64-bit integers above 2^53 are rounded).
  double at(Index i) const;

 private:
  Variant tensor_ = Tensor<double>();
};

template <class To, class From>
To convert_element(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <class T>
Tensor<T> AnyTensor::cast() const& {
  return visit([](const auto& from) {
    Tensor<T> to = Tensor<T>::uninitialized(from.shape());
    const auto values = from.values();
    std::transform(values.begin(), values.end(), to.data(),
                   [](auto v) { return convert_element<T>(v); });
    return to;
  });
}

}  // namespace attnlab
