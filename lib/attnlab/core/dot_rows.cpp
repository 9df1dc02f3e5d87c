#include "attnlab/core/dot_rows.h"

#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/core/dot_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/core/double_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The parts of dot's sum.
constexpr std::size_t kParts = kSixteen;

HWY_INLINE hn::Vec<Doubles> widened(const float* from) {
  return hn::PromoteTo(Doubles(), hn::LoadU(hn::Rebind<float, Doubles>(), from));
}
HWY_INLINE hn::Vec<Doubles> widened(const double* from) { return hn::LoadU(Doubles(), from); }

template <class A>
HWY_INLINE void add_products(const A* a, const float* b, hn::Vec<Doubles> (&sums)[kVectors]) {
  for (std::size_t v = 0; v < kVectors; ++v) {
    sums[v] = hn::MulAdd(widened(a + v * kLanes), widened(b + v * kLanes), sums[v]);
  }
}

// A is float or, widened before, double.
template <class A>
HWY_INLINE double dot_in_vectors(const A* a, const float* b, std::size_t length) {
  const Doubles d;
  hn::Vec<Doubles> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kParts <= length; i += kParts) add_products(a + i, b + i, sums);
  if (i < length) {
    // Products of zeros change no part: none is ever -0.
    A last_a[kParts] = {};
    float last_b[kParts] = {};
    std::copy(a + i, a + length, last_a);
    std::copy(b + i, b + length, last_b);
    add_products(last_a, last_b, sums);
  }
  for (std::size_t half = kVectors / 2; half > 0; half /= 2) {
    for (std::size_t v = 0; v < half; ++v) sums[v] = hn::Add(sums[v], sums[v + half]);
  }
  HWY_ALIGN double parts[kLanes];
  hn::Store(sums[0], d, parts);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t p = 0; p < half; ++p) parts[p] += parts[p + half];
  }
  return parts[0];
}

void each_with_its_own(const float* a, const float* b, std::size_t length, std::span<double> out) {
  for (double& product : out) {
    product = dot_in_vectors(a, b, length);
    a += length;
    b += length;
  }
}

void one_with_each(const double* a, const float* b, std::size_t length, std::span<double> out) {
  for (double& product : out) {
    product = dot_in_vectors(a, b, length);
    b += length;
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(each_with_its_own);
HWY_EXPORT(one_with_each);

void dot_of_rows(std::span<const float> a, std::span<const float> b, std::size_t length,
                 std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(each_with_its_own)(a.data(), b.data(), length, out);
}

void dot_with_rows(std::span<const float> a, std::span<const float> b, std::span<double> out) {
  const std::vector<double> wide(a.begin(), a.end());
  HWY_DYNAMIC_DISPATCH(one_with_each)(wide.data(), b.data(), a.size(), out);
}

}  // namespace attnlab
#endif
