// Tried without gain, on a Zen 3 in AVX2: ratios and their sums in one pass, and that as a pipeline
// of three stages that keeps no logarithms in memory (a row took as long as before or longer: the
// sums hid in no gaps of the exponentials); fused multiply-adds in the sums; one division for two
// vectors of the secular sums, whose products took longer than the division.

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
// e to this is far below float64's smallest number.
constexpr double kDeepest = -1000;

// A sum in as many parts.
template <std::size_t count, class D = Doubles>
class Parts {
 public:
  HWY_INLINE Parts() {
    for (auto& part : parts_) part = hn::Zero(D());
  }
  HWY_INLINE void add(std::size_t v, hn::Vec<D> values) { parts_[v] = hn::Add(parts_[v], values); }
  HWY_INLINE double total() const {
    HWY_ALIGN double parts[count];
    for (std::size_t v = 0; v < count / kLength; ++v) {
      hn::Store(parts_[v], D(), parts + v * kLength);
    }
    for (std::size_t half = count / 2; half > 0; half /= 2) {
      for (std::size_t p = 0; p < half; ++p) parts[p] += parts[p + half];
    }
    return parts[0];
  }

 private:
  static constexpr std::size_t kLength = hn::MaxLanes(D());
  hn::Vec<D> parts_[count / kLength];
};

HWY_INLINE double largest_lane(Vector values) {
  return hn::GetLane(hn::MaxOfLanes(Doubles(), values));
}

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

template <Depth depth>
HWY_INLINE void to_ratios(double* logits, double* ratios, std::size_t n, double highest) {
  const Doubles d;
  // What hides how long one waits for the step before.
  constexpr std::size_t kTogether = std::min<std::size_t>(4, 2 * kVectors);
  const Vector shift = hn::Set(d, highest);
  for (std::size_t i = 0; i < n; i += kTogether * kLanes) {
    Vector x[kTogether], powers[kTogether];
    for (std::size_t v = 0; v < kTogether; ++v) {
      double* at = logits + i + v * kLanes;
      x[v] = hn::Sub(hn::Load(d, at), shift);
      hn::Store(x[v], d, at);
      if constexpr (depth == Depth::all) x[v] = hn::Max(x[v], hn::Set(d, kDeepest));
    }
    exponential<depth>(d, x, powers);
    for (std::size_t v = 0; v < kTogether; ++v) {
      hn::Store(powers[v], d, ratios + i + v * kLanes);
    }
  }
}

void exponentials(double* logits, double* ratios, std::size_t n, std::size_t largest,
                  const LogitRange& range) {
  // Some number for those that take no part.
  std::fill(logits + n, logits + padded_length(n), range.highest);
  if (range.lowest - range.highest >= exponential_constants::kLowestNormal) {
    to_ratios<Depth::normal>(logits, ratios, n, range.highest);
  } else {
    to_ratios<Depth::all>(logits, ratios, n, range.highest);
  }
  logits[largest] = -kInfinity;
  ratios[largest] = 0;
  std::fill(logits + n, logits + padded_length(n), -kInfinity);
  std::fill(ratios + n, ratios + padded_length(n), 0.0);
}

RatioSums summed(const double* ratios, const double* log_ratios, std::size_t n) {
  const Doubles d;
  Parts<kRatioParts> sum, squares, cubes, surprise;
  Vector largest = hn::Zero(d), second = hn::Set(d, -kInfinity);
  for (std::size_t i = 0; i < n; i += kRatioParts) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = i + v * kLanes;
      const Vector ratio = hn::Load(d, ratios + at), log_ratio = hn::Load(d, log_ratios + at);
      const Vector square = hn::Mul(ratio, ratio);
      sum.add(v, ratio);
      squares.add(v, square);
      cubes.add(v, hn::Mul(square, ratio));
      // 0 ln 0 = 0
      surprise.add(v, hn::Mul(ratio, hn::Max(log_ratio, hn::Set(d, kDeepest))));
      largest = hn::Max(largest, ratio);
      second = hn::Max(second, log_ratio);
    }
  }
  return {sum.total(),       squares.total(),       cubes.total(),
          -surprise.total(), largest_lane(largest), largest_lane(second)};
}

ScaledPowers powers(const double* ratios, std::size_t n, double scale) {
  const Doubles d;
  Parts<kRatioParts> squares, cubes;
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
  // Fewer parts than the other sums have: with these all stay in registers.
  constexpr std::size_t kParts = 4;
#if HWY_HAVE_SCALABLE
  using D = Doubles;
#else
  using D = hn::CappedTag<double, kParts>;
#endif
  const D d;
  constexpr std::size_t kLength = hn::MaxLanes(d);
  const auto at = hn::Set(d, x);
  Parts<kParts, D> sums[kSecularSums];
  // Two rounds at a time: a division waits for its divisor while the other's powers are summed.
  for (std::size_t i = 0; i < n; i += 2 * kParts) {
    for (std::size_t v = 0; v < 2 * kParts / kLength; ++v) {
      const std::size_t part = v % (kParts / kLength);
      const auto ratio = hn::Load(d, ratios + i + v * kLength);
      const auto t = hn::Div(ratio, hn::Sub(at, ratio));
      const auto t2 = hn::Mul(t, t), t4 = hn::Mul(t2, t2);
      sums[0].add(part, t);
      sums[1].add(part, t2);
      sums[2].add(part, hn::Mul(t2, t));
      sums[3].add(part, t4);
      sums[4].add(part, hn::Mul(t4, t));
      sums[5].add(part, hn::Mul(t4, t2));
    }
  }
  std::array<double, kSecularSums> totals{};
  for (std::size_t k = 0; k < kSecularSums; ++k) totals[k] = sums[k].total();
  return totals;
}

std::size_t small(const double* ratios, std::size_t n, double limit, double* to) {
  const Doubles d;
  const Vector most = hn::Set(d, limit);
  constexpr std::size_t kBlock = 2 * kRatioParts;
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; i += kBlock) {
    Vector least = hn::Load(d, ratios + i);
    for (std::size_t j = kLanes; j < kBlock; j += kLanes) {
      least = hn::Min(least, hn::Load(d, ratios + i + j));
    }
    if (hn::AllFalse(d, hn::Le(least, most))) continue;
    // Written whether it counts or not: which do is not to be foreseen.
    for (std::size_t j = i; j < std::min(n, i + kBlock); ++j) {
      to[count] = ratios[j];
      count += ratios[j] <= limit ? 1 : 0;
    }
  }
  return count;
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(scaled);
HWY_EXPORT(place_of);
HWY_EXPORT(exponentials);
HWY_EXPORT(summed);
HWY_EXPORT(powers);
HWY_EXPORT(secular);
HWY_EXPORT(small);

LogitRange scale_logits(std::span<const double> scores, double factor, double* logits) {
  return HWY_DYNAMIC_DISPATCH(scaled)(scores, factor, logits);
}

std::size_t first_place(const double* logits, std::size_t n, double value) {
  return HWY_DYNAMIC_DISPATCH(place_of)(logits, n, value);
}

void ratios_of_logits(double* logits, double* ratios, std::size_t n, std::size_t largest,
                      const LogitRange& range) {
  HWY_DYNAMIC_DISPATCH(exponentials)(logits, ratios, n, largest, range);
}

RatioSums sums_of_ratios(const double* ratios, const double* log_ratios, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(summed)(ratios, log_ratios, n);
}

ScaledPowers scaled_powers(const double* ratios, std::size_t n, double scale) {
  return HWY_DYNAMIC_DISPATCH(powers)(ratios, n, scale);
}

std::array<double, kSecularSums> secular_sums(const double* ratios, std::size_t n, double x) {
  return HWY_DYNAMIC_DISPATCH(secular)(ratios, n, x);
}

std::size_t small_ratios(const double* ratios, std::size_t n, double limit, double* to) {
  return HWY_DYNAMIC_DISPATCH(small)(ratios, n, limit, to);
}

}  // namespace attnlab
#endif
