#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace attnlab {

using Index = std::int64_t;

// IEEE 754 binary16 and bfloat16 as Eigen has them: every operation is done in float32 and
// rounded to nearest even.
using Float16 = Eigen::half;
using BFloat16 = Eigen::bfloat16;

// The element types that files may hold. Attention is computed in float32 or float64.
enum class DType {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64
};

// Calls f(std::type_identity<T>{}) with the C++ type of `dtype`.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
      return f(std::type_identity<bool>{});
    case DType::int8:
      return f(std::type_identity<std::int8_t>{});
    case DType::int16:
      return f(std::type_identity<std::int16_t>{});
    case DType::int32:
      return f(std::type_identity<std::int32_t>{});
    case DType::int64:
      return f(std::type_identity<std::int64_t>{});
    case DType::uint8:
      return f(std::type_identity<std::uint8_t>{});
    case DType::uint16:
      return f(std::type_identity<std::uint16_t>{});
    case DType::uint32:
      return f(std::type_identity<std::uint32_t>{});
    case DType::uint64:
      return f(std::type_identity<std::uint64_t>{});
    case DType::float16:
      return f(std::type_identity<Float16>{});
    case DType::bfloat16:
      return f(std::type_identity<BFloat16>{});
    case DType::float32:
      return f(std::type_identity<float>{});
    case DType::float64:
      break;
  }
  return f(std::type_identity<double>{});
}

// "float32", "int8", "bool" ...
std::string_view dtype_name(DType dtype);

// Bytes of one element.
std::size_t dtype_size(DType dtype);

inline bool is_floating(DType dtype) { return dtype >= DType::float16; }
inline bool is_sixteen_bit(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

}  // namespace attnlab
