#include "attnlab/attention/ratio_sums.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/attention/ratio_sums.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/attention/exponential-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

#if HWY_HAVE_SCALABLE
using Doubles = hn::CappedTag<double, 1>;
#else
using Doubles = hn::CappedTag<double, kRatioParts>;
#endif
using Vector = hn::Vec<Doubles>;
constexpr std::size_t kLanes = hn::MaxLanes(Doubles());
constexpr std::size_t kVectors = kRatioParts / kLanes;
static_assert(kVectors >= 1 && kRatioParts % kLanes == 0);
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A sum in kRatioParts parts.
class Parts {
 public:
  HWY_INLINE Parts() {
    for (Vector& part : parts_) part = hn::Zero(Doubles());
  }
  HWY_INLINE void add(std::size_t v, Vector values) { parts_[v] = hn::Add(parts_[v], values); }
  HWY_INLINE double total() const {
    HWY_ALIGN double parts[kRatioParts];
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(parts_[v], Doubles(), parts + v * kLanes);
    for (std::size_t half = kRatioParts / 2; half > 0; half /= 2) {
      for (std::size_t p = 0; p < half; ++p) parts[p] += parts[p + half];
    }
    return parts[0];
  }

 private:
  Vector parts_[kVectors];
};

HWY_INLINE double largest_lane(Vector values) {
  return hn::GetLane(hn::MaxOfLanes(Doubles(), values));
}

// What is summed over ratios.
class Collector {
 public:
  HWY_INLINE Collector() : largest_(hn::Zero(Doubles())), second_(hn::Set(Doubles(), -kInfinity)) {}
  HWY_INLINE void add(std::size_t v, Vector ratio, Vector log_ratio) {
    const Vector square = hn::Mul(ratio, ratio);
    ratios_.add(v, ratio);
    squares_.add(v, square);
    cubes_.add(v, hn::Mul(square, ratio));
    // 0 ln 0 = 0
    const Vector bounded = hn::Max(log_ratio, hn::Set(Doubles(), -1000.0));
    surprise_.add(v, hn::Mul(ratio, bounded));
    largest_ = hn::Max(largest_, ratio);
    second_ = hn::Max(second_, log_ratio);
  }
  HWY_INLINE RatioSums sums() const {
    return {ratios_.total(),    squares_.total(),       cubes_.total(),
            -surprise_.total(), largest_lane(largest_), largest_lane(second_)};
  }

 private:
  Parts ratios_, squares_, cubes_, surprise_;
  Vector largest_, second_;
};

LogitRange scaled(std::span<const double> scores, double factor, double* logits) {
  const Doubles d;
  const Vector f = hn::Set(d, factor);
  Vector low = hn::Set(d, kInfinity), high = hn::Set(d, -kInfinity), check = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes <= scores.size(); i += kLanes) {
    const Vector z = hn::Mul(f, hn::LoadU(d, scores.data() + i));
    hn::Store(z, d, logits + i);
    low = hn::Min(low, z);
    high = hn::Max(high, z);
    // NaN for what is not finite
    check = hn::Add(check, hn::Sub(z, z));
  }
  LogitRange range;
  range.lowest = hn::GetLane(hn::MinOfLanes(d, low));
  range.highest = largest_lane(high);
  range.finite = hn::AllFalse(d, hn::IsNaN(check));
  for (; i < scores.size(); ++i) {
    logits[i] = factor * scores[i];
    range.lowest = std::min(range.lowest, logits[i]);
    range.highest = std::max(range.highest, logits[i]);
    range.finite = range.finite && std::isfinite(logits[i]);
  }
  std::fill(logits + i, logits + padded_length(i), -kInfinity);
  return range;
}

std::size_t place_of(const double* logits, std::size_t n, double value) {
  const Doubles d;
  const Vector wanted = hn::Set(d, value);
  std::size_t i = 0;
  while (i < n && hn::AllFalse(d, hn::Eq(hn::Load(d, logits + i), wanted))) i += kLanes;
  while (i < n && logits[i] != value) ++i;
  return i;
}

template <Subnormals subnormals>
HWY_INLINE RatioSums to_ratios(double* row, std::size_t n, double highest) {
  const Doubles d;
  const Vector shift = hn::Set(d, highest);
  Collector collector;
  for (std::size_t i = 0; i < n; i += kRatioParts) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      double* at = row + i + v * kLanes;
      const Vector log_ratio = hn::Sub(hn::Load(d, at), shift);
      const Vector ratio = exponential<subnormals>(d, hn::Max(log_ratio, hn::Set(d, -1000.0)));
      hn::Store(ratio, d, at);
      collector.add(v, ratio, log_ratio);
    }
  }
  return collector.sums();
}

RatioSums exponentials(double* row, std::size_t n, double highest, double lowest) {
  return lowest - highest < exponential_constants::kLowestNormal
             ? to_ratios<Subnormals::kept>(row, n, highest)
             : to_ratios<Subnormals::zero>(row, n, highest);
}

RatioSums collected(const double* ratios, const double* log_ratios, std::size_t n) {
  const Doubles d;
  Collector collector;
  for (std::size_t i = 0; i < n; i += kRatioParts) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = i + v * kLanes;
      collector.add(v, hn::Load(d, ratios + at), hn::Load(d, log_ratios + at));
    }
  }
  return collector.sums();
}

ScaledPowers powers(const double* ratios, std::size_t n, double scale) {
  const Doubles d;
  Parts squares, cubes;
  for (std::size_t i = 0; i < n; i += kRatioParts) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Vector ratio = hn::Load(d, ratios + i + v * kLanes);
      const Vector scaled_ratio = hn::Mul(ratio, hn::Set(d, scale));
      const Vector square = hn::Mul(scaled_ratio, scaled_ratio);
      squares.add(v, square);
      cubes.add(v, hn::Mul(square, ratio));
    }
  }
  return {squares.total(), cubes.total()};
}

std::array<double, kSecularSums> secular(const double* ratios, std::size_t n, double x) {
  const Doubles d;
  const Vector at = hn::Set(d, x);
  Parts sums[kSecularSums];
  for (std::size_t i = 0; i < n; i += kRatioParts) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Vector ratio = hn::Load(d, ratios + i + v * kLanes);
      const Vector t = hn::Div(ratio, hn::Sub(at, ratio));
      const Vector t2 = hn::Mul(t, t), t4 = hn::Mul(t2, t2);
      const Vector t3 = hn::Mul(t2, t), t5 = hn::Mul(t4, t);
      sums[0].add(v, t);
      sums[1].add(v, t2);
      sums[2].add(v, t3);
      sums[3].add(v, t4);
      sums[4].add(v, t5);
      sums[5].add(v, hn::Mul(t4, t2));
      sums[6].add(v, hn::Mul(t4, t3));
      sums[7].add(v, hn::Mul(t4, t4));
    }
  }
  std::array<double, kSecularSums> totals{};
  for (std::size_t k = 0; k < kSecularSums; ++k) totals[k] = sums[k].total();
  return totals;
}

void append_small(const double* ratios, std::size_t n, std::size_t largest, double limit,
                  std::vector<double>& small) {
  const Doubles d;
  const Vector most = hn::Set(d, limit);
  for (std::size_t i = 0; i < n; i += kLanes) {
    if (hn::AllFalse(d, hn::Le(hn::Load(d, ratios + i), most))) continue;
    for (std::size_t j = i; j < std::min(n, i + kLanes); ++j) {
      if (j != largest && ratios[j] <= limit) small.push_back(ratios[j]);
    }
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(scaled);
HWY_EXPORT(place_of);
HWY_EXPORT(exponentials);
HWY_EXPORT(collected);
HWY_EXPORT(powers);
HWY_EXPORT(secular);
HWY_EXPORT(append_small);

LogitRange scale_logits(std::span<const double> scores, double factor, double* logits) {
  return HWY_DYNAMIC_DISPATCH(scaled)(scores, factor, logits);
}

std::size_t first_place(const double* logits, std::size_t n, double value) {
  return HWY_DYNAMIC_DISPATCH(place_of)(logits, n, value);
}

RatioSums ratios_of_logits(double* row, std::size_t n, double highest, double lowest) {
  return HWY_DYNAMIC_DISPATCH(exponentials)(row, n, highest, lowest);
}

RatioSums sums_of_ratios(const double* ratios, const double* log_ratios, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(collected)(ratios, log_ratios, n);
}

ScaledPowers scaled_powers(const double* ratios, std::size_t n, double scale) {
  return HWY_DYNAMIC_DISPATCH(powers)(ratios, n, scale);
}

std::array<double, kSecularSums> secular_sums(const double* ratios, std::size_t n, double x) {
  return HWY_DYNAMIC_DISPATCH(secular)(ratios, n, x);
}

void append_small_ratios(const double* ratios, std::size_t n, std::size_t largest, double limit,
                         std::vector<double>& small) {
  HWY_DYNAMIC_DISPATCH(append_small)(ratios, n, largest, limit, small);
}

}  // namespace attnlab
#endif
