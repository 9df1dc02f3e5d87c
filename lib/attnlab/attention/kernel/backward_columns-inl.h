// What happens to tiles of transposed scores [keys, queries]: a query a lane, so that what is known
// of the queries are vectors, and their sums over the keys stay in lanes. Included once for every
// target, see hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_BACKWARD_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_BACKWARD_COLUMNS_INL_H_
#undef ATTNLAB_KERNEL_BACKWARD_COLUMNS_INL_H_
#else
#define ATTNLAB_KERNEL_BACKWARD_COLUMNS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "attnlab/attention/kernel/exp-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Keys [0, keys) and queries [0, queries) of a tile; queries are whole panels.
struct TileSize {
  Index keys;
  Index queries;
};

// Scores of the keys outside [first, last) of a query become -infinity. Both are whole numbers.
template <class T>
HWY_INLINE void hide_outside(View<T> scores, TileSize size, const T* HWY_RESTRICT first,
                             const T* HWY_RESTRICT last) {
  const hn::ScalableTag<T> d;
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (Index i = 0; i < size.queries; i += kLanes<T>) {
    const auto from = hn::Load(d, first + i), to = hn::Load(d, last + i);
    for (Index j = 0; j < size.keys; ++j) {
      const auto key = hn::Set(d, static_cast<T>(j));
      const auto seen = hn::And(hn::Ge(key, from), hn::Lt(key, to));
      T* at = scores.row(j) + i;
      hn::Store(hn::IfThenElse(seen, hn::Load(d, at), hidden), d, at);
    }
  }
}

// scores -= slope |self - j| for the key j of the tile and what each query has for self.
template <class T>
HWY_INLINE void add_linear_biases(View<T> scores, TileSize size, const T* HWY_RESTRICT self,
                                  T slope) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, slope);
  for (Index i = 0; i < size.queries; i += kLanes<T>) {
    const auto position = hn::Load(d, self + i);
    for (Index j = 0; j < size.keys; ++j) {
      T* at = scores.row(j) + i;
      const auto distance = hn::Abs(hn::Sub(position, hn::Set(d, static_cast<T>(j))));
      hn::Store(hn::NegMulAdd(factor, distance, hn::Load(d, at)), d, at);
    }
  }
}

// max = max(max, scores) of each query; `is_nan` becomes 1 where a score is NaN.
template <class T>
HWY_INLINE void raise_maxima(View<const T> scores, TileSize size, T* HWY_RESTRICT max,
                             T* HWY_RESTRICT is_nan) {
  const hn::ScalableTag<T> d;
  for (Index i = 0; i < size.queries; i += kLanes<T>) {
    auto m = hn::Load(d, max + i);
    auto nan = hn::Ne(hn::Load(d, is_nan + i), hn::Zero(d));
    for (Index j = 0; j < size.keys; ++j) {
      const auto s = hn::Load(d, scores.row(j) + i);
      nan = hn::Or(nan, hn::IsNaN(s));
      m = hn::Max(m, s);
    }
    hn::Store(m, d, max + i);
    hn::Store(hn::IfThenElseZero(nan, hn::Set(d, T(1))), d, is_nan + i);
  }
}

// Keys whose terms are added in T before their sums go to double: the error that a mean has is in
// every gradient of its row, with the same sign.
inline constexpr Index kSummedKeys = 8;

// Adds the lanes to sums in double.
template <class T, class V>
HWY_INLINE void add_lanes(V lanes, double* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  HWY_ALIGN T values[kLanes<T>];
  hn::Store(lanes, d, values);
  for (Index i = 0; i < kLanes<T>; ++i) sums[i] += static_cast<double>(values[i]);
}

// In place, w = e^(score - max) of the scores, and 0 for the gradient G of a weight where its key
// is hidden. Adds sum w and sum w (G - pivot) of each query to `sums` and `means`.
template <class T>
HWY_INLINE void weigh_columns(View<T> scores, View<T> grad_weights, TileSize size,
                              const T* HWY_RESTRICT max, const T* HWY_RESTRICT pivot,
                              double* HWY_RESTRICT sums, double* HWY_RESTRICT means) {
  const hn::ScalableTag<T> d;
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (Index i = 0; i < size.queries; i += kLanes<T>) {
    const auto m = hn::Load(d, max + i), c = hn::Load(d, pivot + i);
    for (Index j = 0; j < size.keys;) {
      auto sum = hn::Zero(d), mean = hn::Zero(d);
      for (const Index last = std::min(size.keys, j + kSummedKeys); j < last; ++j) {
        T* score = scores.row(j) + i;
        T* grad = grad_weights.row(j) + i;
        const auto s = hn::Load(d, score);
        const auto w = power<Base::e>(d, hn::Sub(s, m));
        const auto g = hn::IfThenElseZero(hn::Gt(s, hidden), hn::Load(d, grad));
        sum = hn::Add(sum, w);
        mean = hn::MulAdd(w, hn::Sub(g, c), mean);
        hn::Store(w, d, score);
        hn::Store(g, d, grad);
      }
      add_lanes<T>(sum, sums + i);
      add_lanes<T>(mean, means + i);
    }
  }
}

// In place, w (G - pivot - mean) of G, 0 for a query whose factor is.
template <class T>
HWY_INLINE void differentiate_columns(View<const T> weights, View<T> grads, TileSize size,
                                      const T* HWY_RESTRICT pivot, const T* HWY_RESTRICT mean,
                                      const T* HWY_RESTRICT factor) {
  const hn::ScalableTag<T> d;
  for (Index i = 0; i < size.queries; i += kLanes<T>) {
    const auto c = hn::Load(d, pivot + i), m = hn::Load(d, mean + i);
    const auto counts = hn::Ne(hn::Load(d, factor + i), hn::Zero(d));
    for (Index j = 0; j < size.keys; ++j) {
      T* at = grads.row(j) + i;
      const auto g = hn::Sub(hn::Sub(hn::Load(d, at), c), m);
      hn::Store(hn::IfThenElseZero(counts, hn::Mul(hn::Load(d, weights.row(j) + i), g)), d, at);
    }
  }
}

// The product of each column of A and the same column of B, both in panels [depth, columns]: the
// sum runs over the depth as in multiply_panel.
template <class T>
HWY_INLINE void multiply_panels_by_column(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b,
                                          Index depth, Index columns, T* HWY_RESTRICT products) {
  const hn::ScalableTag<T> d;
  for (Index i = 0; i < columns; i += kLanes<T>) {
    const Index start = i / kPanel<T> * kPanel<T> * depth + i % kPanel<T>;
    auto sum = hn::Zero(d);
    for (Index c = 0; c < depth; ++c) {
      const Index at = start + c * kPanel<T>;
      sum = hn::MulAdd(hn::LoadU(d, a + at), hn::LoadU(d, b + at), sum);
    }
    hn::Store(sum, d, products + i);
  }
}

// a = a b
template <class T>
HWY_INLINE void multiply_columns(View<T> a, View<const T> b, TileSize size) {
  const hn::ScalableTag<T> d;
  for (Index j = 0; j < size.keys; ++j) {
    for (Index i = 0; i < size.queries; i += kLanes<T>) {
      T* at = a.row(j) + i;
      hn::Store(hn::Mul(hn::Load(d, at), hn::Load(d, b.row(j) + i)), d, at);
    }
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
