#include "attnlab/experiments/rounding.h"

#include <bit>
#include <cstdint>
#include <type_traits>

#include "attnlab/core/tensor.h"

namespace attnlab {
namespace {

// The bits of a float as an integer of its size. Without the sign they grow with the magnitude.
template <class T>
auto bits_of(T value) {
  if constexpr (sizeof(T) == 2) {
    return Eigen::numext::bit_cast<std::uint16_t>(value);
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return std::bit_cast<std::uint64_t>(value);
  }
}

template <class T>
double ulps_between_as(double a, double b) {
  const auto x = bits_of(convert_element<T>(a)), y = bits_of(convert_element<T>(b));
  using Bits = std::decay_t<decltype(bits_of(T()))>;
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const std::uint64_t from_zero_x = x & ~std::uint64_t{kSign};
  const std::uint64_t from_zero_y = y & ~std::uint64_t{kSign};
  const bool same_side = (x & kSign) == (y & kSign);
  if (!same_side) return static_cast<double>(from_zero_x + from_zero_y);
  return static_cast<double>(from_zero_x > from_zero_y ? from_zero_x - from_zero_y
                                                       : from_zero_y - from_zero_x);
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return 0x1p-8;
    case DType::float16:
      return 0x1p-11;
    case DType::float32:
      return 0x1p-24;
    default:
      return 0x1p-53;
  }
}

DType narrower(DType a, DType b) { return unit_roundoff(a) > unit_roundoff(b) ? a : b; }

double ulps_between(double a, double b, DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return ulps_between_as<BFloat16>(a, b);
    case DType::float16:
      return ulps_between_as<Float16>(a, b);
    case DType::float32:
      return ulps_between_as<float>(a, b);
    default:
      return ulps_between_as<double>(a, b);
  }
}

}  // namespace attnlab
