// exp in vectors against long double, and the same bits on every target of the processor.

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/exponential.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/attention/exponential-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

// The numbers of x are a multiple of 8.
void exponentials_of(const std::vector<double>& x, bool deep, std::vector<double>& y) {
  const hn::CappedTag<double, 8> d;
  y.resize(x.size());
  for (std::size_t i = 0; i < x.size(); i += hn::Lanes(d)) {
    const hn::Vec<decltype(d)> from[1] = {hn::LoadU(d, x.data() + i)};
    hn::Vec<decltype(d)> to[1];
    if (deep) {
      exponential<Depth::all>(d, from, to);
    } else {
      exponential<Depth::normal>(d, from, to);
    }
    hn::StoreU(to[0], d, y.data() + i);
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

HWY_EXPORT(exponentials_of);

// Uniform down to `lowest`, and around every place where the power of two changes.
std::vector<double> arguments(double lowest) {
  std::vector<double> x(1 << 14);
  fill_uniform(x, 3, Stream::input_x);
  for (double& value : x) value *= lowest;
  for (int n = 0; (n - 0.5) * 0.6931471805599453 < -lowest; ++n) {
    const double edge = -std::max(0.0, n - 0.5) * 0.6931471805599453;
    x.insert(x.end(), {edge, std::nextafter(edge, -1000), edge * (1 + 1e-13), edge * (1 + 1e-9)});
  }
  for (double tiny = 1; tiny > 1e-300; tiny /= 8) x.push_back(-tiny);
  x.resize((x.size() + 7) / 8 * 8);
  for (double& value : x) value = std::max(value, lowest);
  return x;
}

// Largest distance from long double in units in the last place, of 2^-1074 for subnormal numbers.
double largest_error(const std::vector<double>& x, const std::vector<double>& y) {
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    const int exponent = std::max(std::ilogb(static_cast<double>(exact)), -1022);
    const long double unit = std::ldexp(1.0L, exponent - 52);
    largest = std::max(largest, static_cast<double>(std::abs(y[i] - exact) / unit));
  }
  return largest;
}

TEST_CASE("exponentials in vectors are within a unit in the last place, on every target alike") {
  const std::vector<double> normal = arguments(-708), deep = arguments(-745);
  std::vector<double> first_normal, first_deep;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    std::vector<double> y, subnormal;
    HWY_DYNAMIC_DISPATCH(exponentials_of)(normal, false, y);
    HWY_DYNAMIC_DISPATCH(exponentials_of)(deep, true, subnormal);
    CHECK(largest_error(normal, y) < 1);
    CHECK(largest_error(deep, subnormal) < 1.1);
    if (first_normal.empty()) first_normal = y, first_deep = subnormal;
    CHECK(y == first_normal);
    CHECK(subnormal == first_deep);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("exponentials in vectors of 0 and of what is far below it") {
  const std::vector<double> x = {0, -0.0, -746, -1000, -709, -708, -800, -1e-320};
  std::vector<double> y;
  HWY_DYNAMIC_DISPATCH(exponentials_of)(x, true, y);
  for (const std::size_t i : {0u, 1u, 7u}) CHECK(y[i] == 1);
  for (const std::size_t i : {2u, 3u, 6u}) CHECK(y[i] == 0);
  CHECK(y[4] == std::exp(-709.0));
  CHECK(y[5] / std::exp(-708.0) == Approx(1).epsilon(1e-15));
  HWY_DYNAMIC_DISPATCH(exponentials_of)(std::vector<double>(8, -0.0), false, y);
  CHECK(y == std::vector<double>(8, 1.0));
}

}  // namespace
}  // namespace attnlab
#endif
