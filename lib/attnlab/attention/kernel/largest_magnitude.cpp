#include "attnlab/attention/kernel/largest_magnitude.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/attention/kernel/largest_magnitude.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The bits of numbers without their sign are in the order of their magnitudes, NaN the last.
template <class T>
T magnitude(std::span<const T> values) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  constexpr Bits kWithoutSign = std::numeric_limits<Bits>::max();
  constexpr std::size_t kLanes = HWY_LANES(T), kAtOnce = 4 * kLanes;
  const hn::ScalableTag<T> d;
  const hn::Rebind<Bits, decltype(d)> integers;
  const auto mask = hn::Set(integers, kWithoutSign);
  const auto bits = [&](std::size_t i) {
    return hn::And(hn::BitCast(integers, hn::LoadU(d, values.data() + i)), mask);
  };
  // Several at a time: each waits for the one before it.
  auto a = hn::Zero(integers), b = a, c = a, e = a;
  std::size_t i = 0;
  for (; i + kAtOnce <= values.size(); i += kAtOnce) {
    a = hn::Max(a, bits(i));
    b = hn::Max(b, bits(i + kLanes));
    c = hn::Max(c, bits(i + 2 * kLanes));
    e = hn::Max(e, bits(i + 3 * kLanes));
  }
  for (; i + kLanes <= values.size(); i += kLanes) a = hn::Max(a, bits(i));
  HWY_ALIGN Bits lanes[kLanes];
  hn::Store(hn::Max(hn::Max(a, b), hn::Max(c, e)), integers, lanes);
  Bits largest = 0;
  for (const Bits lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < values.size(); ++i) {
    const Bits one = std::bit_cast<Bits>(values[i]) & kWithoutSign;
    largest = one > largest ? one : largest;
  }
  return std::bit_cast<T>(largest);
}

float magnitude_float(std::span<const float> values) { return magnitude(values); }
double magnitude_double(std::span<const double> values) { return magnitude(values); }

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(magnitude_float);
HWY_EXPORT(magnitude_double);

float largest_magnitude(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(magnitude_float)(values);
}
double largest_magnitude(std::span<const double> values) {
  return HWY_DYNAMIC_DISPATCH(magnitude_double)(values);
}

}  // namespace attnlab
#endif
