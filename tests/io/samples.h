#pragma once

#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab::test {

inline constexpr std::array<DType, 13> kDTypes = {
    DType::boolean,  DType::int8,    DType::int16,  DType::int32,  DType::int64,
    DType::uint8,    DType::uint16,  DType::uint32, DType::uint64, DType::float16,
    DType::bfloat16, DType::float32, DType::float64};

// A tensor with the awkward values of its type: the ends of its range, for floats the smallest
// denormal, values without a short decimal text, negative zero and the non-finite ones.
template <class T>
Tensor<T> awkward(const Shape& shape) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> pool = {T(0), T(1), Limits::max(), Limits::lowest()};
  if constexpr (!std::is_integral_v<T>) {
    pool = {T(0.1f),
            T(-0.0f),
            T(1.0f / 3),
            Limits::max(),
            Limits::lowest(),
            Limits::denorm_min(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN(),
            Limits::epsilon(),
            T(100000.0f),
            T(-7.0f)};
  }
  if constexpr (std::is_same_v<T, double>) pool[0] = 0.1;
  Tensor<T> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) {
    tensor[i] = pool[static_cast<std::size_t>(i) % pool.size()];
  }
  return tensor;
}

inline AnyTensor awkward(DType dtype, const Shape& shape) {
  return visit_dtype(
      dtype, [&](auto tag) -> AnyTensor { return awkward<typename decltype(tag)::type>(shape); });
}

// The same type, shape and bits.
inline bool identical(const AnyTensor& a, const AnyTensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return a.visit([&](const auto& left) {
    const auto& right = b.get<std::remove_cvref_t<decltype(left[0])>>();
    return std::memcmp(static_cast<const void*>(left.data()),
                       static_cast<const void*>(right.data()),
                       static_cast<std::size_t>(left.size()) * sizeof(left[0])) == 0;
  });
}

// The same shape and bits, all NaNs being one: text has no other.
inline bool same_values(const AnyTensor& a, const AnyTensor& b) {
  if (a.shape() != b.shape()) return false;
  for (Index i = 0; i < a.size(); ++i) {
    const double left = a.at(i);
    const double right = b.at(i);
    if (std::isnan(left) && std::isnan(right)) continue;
    if (left != right || std::signbit(left) != std::signbit(right)) return false;
  }
  return true;
}

}  // namespace attnlab::test
