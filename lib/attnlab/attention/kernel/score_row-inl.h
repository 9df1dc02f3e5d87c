// What happens to one row of scores, in vectors. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_SCORE_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_SCORE_ROW_INL_H_
#undef ATTNLAB_KERNEL_SCORE_ROW_INL_H_
#else
#define ATTNLAB_KERNEL_SCORE_ROW_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "attnlab/attention/kernel/exp-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Extremes {
  T max;
  bool is_nan;  // one of them is NaN
};

// Of `columns` scores, a multiple of four vectors.
template <class T>
HWY_INLINE Extremes<T> extremes(const T* HWY_RESTRICT scores, Index columns) {
  const hn::ScalableTag<T> d;
  constexpr Index kLane = kLanes<T>;
  auto m0 = hn::Load(d, scores), m1 = hn::Load(d, scores + kLane);
  auto m2 = hn::Load(d, scores + 2 * kLane), m3 = hn::Load(d, scores + 3 * kLane);
  // NaN or infinity less itself is NaN, and stays so in a sum of zeros.
  auto unordered =
      hn::Or(hn::Or(hn::IsNaN(m0), hn::IsNaN(m1)), hn::Or(hn::IsNaN(m2), hn::IsNaN(m3)));
  for (Index j = 4 * kLane; j < columns; j += 4 * kLane) {
    const auto s0 = hn::Load(d, scores + j), s1 = hn::Load(d, scores + j + kLane);
    const auto s2 = hn::Load(d, scores + j + 2 * kLane), s3 = hn::Load(d, scores + j + 3 * kLane);
    unordered = hn::Or(unordered, hn::Or(hn::Or(hn::IsNaN(s0), hn::IsNaN(s1)),
                                         hn::Or(hn::IsNaN(s2), hn::IsNaN(s3))));
    m0 = hn::Max(m0, s0);
    m1 = hn::Max(m1, s1);
    m2 = hn::Max(m2, s2);
    m3 = hn::Max(m3, s3);
  }
  const auto m = hn::Max(hn::Max(m0, m1), hn::Max(m2, m3));
  return {hn::GetLane(hn::MaxOfLanes(d, m)), !hn::AllFalse(d, unordered)};
}

// weights = e^(score - max), in place, and their sums added to `sums` lane by lane. Which sum a
// weight goes to depends on its column alone.
template <class T>
HWY_INLINE void weights_of_row(T* HWY_RESTRICT scores, Index columns, T max, T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  constexpr Index kLane = kLanes<T>;
  const auto m = hn::Set(d, max);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  for (Index j = 0; j < columns; j += 4 * kLane) {
    const auto w0 = exponential(d, hn::Sub(hn::Load(d, scores + j), m));
    const auto w1 = exponential(d, hn::Sub(hn::Load(d, scores + j + kLane), m));
    const auto w2 = exponential(d, hn::Sub(hn::Load(d, scores + j + 2 * kLane), m));
    const auto w3 = exponential(d, hn::Sub(hn::Load(d, scores + j + 3 * kLane), m));
    hn::Store(w0, d, scores + j);
    hn::Store(w1, d, scores + j + kLane);
    hn::Store(w2, d, scores + j + 2 * kLane);
    hn::Store(w3, d, scores + j + 3 * kLane);
    sum0 = hn::Add(sum0, w0);
    sum1 = hn::Add(sum1, w1);
    sum2 = hn::Add(sum2, w2);
    sum3 = hn::Add(sum3, w3);
  }
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  hn::Store(hn::Add(hn::Load(d, sums), sum), d, sums);
}

// The sum of the lanes.
template <class T>
HWY_INLINE T sum_of(const T* sums) {
  const hn::ScalableTag<T> d;
  return hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums)));
}

// into = weights e^difference / sum
template <class T>
HWY_INLINE void write_scaled(const T* HWY_RESTRICT weights, Index count, T difference, T sum,
                             T* HWY_RESTRICT into) {
  const hn::ScalableTag<T> d;
  constexpr Index kLane = kLanes<T>;
  const auto factor = hn::Div(exponential(d, hn::Set(d, difference)), hn::Set(d, sum));
  Index j = 0;
  for (; j + kLane <= count; j += kLane) {
    hn::StoreU(hn::Mul(factor, hn::Load(d, weights + j)), d, into + j);
  }
  const T last = hn::GetLane(factor);
  for (; j < count; ++j) into[j] = last * weights[j];
}

// scores = cap tanh(scores / cap)
template <class T>
HWY_INLINE void cap_row(T* scores, Index count, T cap) {
  for (Index j = 0; j < count; ++j) scores[j] = cap * std::tanh(scores[j] / cap);
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
