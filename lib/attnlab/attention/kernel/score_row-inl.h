// What happens to one row of scores, in vectors. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_SCORE_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_SCORE_ROW_INL_H_
#undef ATTNLAB_KERNEL_SCORE_ROW_INL_H_
#else
#define ATTNLAB_KERNEL_SCORE_ROW_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "attnlab/attention/kernel/exp-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of `columns` scores, a multiple of two vectors; some number, where one of them is NaN.
template <class T>
HWY_INLINE T largest(const T* HWY_RESTRICT scores, Index columns) {
  const hn::ScalableTag<T> d;
  constexpr Index kLane = kLanes<T>;
  auto m0 = hn::Load(d, scores), m1 = hn::Load(d, scores + kLane);
  for (Index j = 2 * kLane; j < columns; j += 2 * kLane) {
    m0 = hn::Max(m0, hn::Load(d, scores + j));
    m1 = hn::Max(m1, hn::Load(d, scores + j + kLane));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// weights = base^(score - reference), in place, and their sums added to `sums` lane by lane, one
// vector after the other. False where a score is NaN, or infinity.
template <class T, Base base>
HWY_INLINE bool weights_of_row(T* HWY_RESTRICT scores, Index columns, T reference,
                               T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  constexpr Index kLane = kLanes<T>;
  const auto m = hn::Set(d, reference);
  auto sum = hn::Load(d, sums);
  // Of numbers or -infinity; NaN stays.
  auto check = hn::Zero(d);
  for (Index j = 0; j < columns; j += 2 * kLane) {
    const auto x0 = hn::Sub(hn::Load(d, scores + j), m);
    const auto x1 = hn::Sub(hn::Load(d, scores + j + kLane), m);
    check = hn::Add(check, hn::Add(x0, x1));
    const auto w0 = power<base>(d, x0), w1 = power<base>(d, x1);
    hn::Store(w0, d, scores + j);
    hn::Store(w1, d, scores + j + kLane);
    sum = hn::Add(hn::Add(sum, w0), w1);
  }
  hn::Store(sum, d, sums);
  return hn::AllFalse(d, hn::IsNaN(check));
}

// The sum of the lanes, in float64: what it is off, all weights of a row are off alike.
template <class T>
HWY_INLINE double sum_of(const T* sums) {
  double even = 0, odd = 0;
  Index j = 0;
  for (; j + 2 <= kLanes<T>; j += 2) {
    even += static_cast<double>(sums[j]);
    odd += static_cast<double>(sums[j + 1]);
  }
  return even + (j < kLanes<T> ? static_cast<double>(sums[j]) : odd);
}

// scores = cap tanh(scores / cap)
template <class T>
HWY_INLINE void cap_row(T* scores, Index count, T cap) {
  for (Index j = 0; j < count; ++j) scores[j] = cap * std::tanh(scores[j] / cap);
}

// scores -= slope |self - j| for j from 0 on: whole vectors of them, for the scores of a tile are.
template <class T>
HWY_INLINE void add_linear_bias(T* HWY_RESTRICT scores, Index columns, T self, T slope) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, slope), lanes = hn::Iota(d, T(0));
  for (Index j = 0; j < columns; j += kLanes<T>) {
    // Whole numbers, exact up to 2^24 in float32.
    const auto distance = hn::Abs(hn::Sub(hn::Set(d, self - static_cast<T>(j)), lanes));
    hn::Store(hn::NegMulAdd(factor, distance, hn::Load(d, scores + j)), d, scores + j);
  }
}

// base^x of one number, with the bits that it has in a vector.
template <class T>
T power_at(Base base, T x) {
  const hn::ScalableTag<T> d;
  const auto v = hn::Set(d, x);
  return hn::GetLane(base == Base::e ? power<Base::e>(d, v) : power<Base::two>(d, v));
}

template <class T>
bool has_nan(const T* scores, Index count) {
  return std::any_of(scores, scores + count, [](T score) { return std::isnan(score); });
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
