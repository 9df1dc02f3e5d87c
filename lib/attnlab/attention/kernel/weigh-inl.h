// Scores that become weights in registers, on their way out of the first product. Included once for
// every target, see hwy/foreach_target.h.
//
// Where the time goes, as measured with AVX2 on a Zen 3 at d_k 64, where one head of 2048 queries
// reaches .83 of the FMA peak: the first product alone would reach .94 and the second .98, the
// powers take some 5 cycles a vector, packing K 1%. After a panel 12 stores in a row hold up the
// multiply-adds of the next for 24 cycles, 6 for none: so there are powers between them. Scores
// that were stored, compared and loaded again to be weighed took 2 points more, powers of e instead
// of two 2.5. Tried without gain: several groups of queries a panel of K, Q packed, tiles of 128
// and 512 keys, unrolling by hand, prefetch of Q, V and the output, the output divided by way of a
// reciprocal (the divider works beside the rest), rows of a group that finish one after the other,
// and the powers of one panel between the multiply-adds of the next (each waits for the one before
// it, and behind them registers run out). Sums that begin at -reference bring 2%, but are rounded
// more coarsely than those of the plain path.
//
// What the weights and the output are off comes from the sums over d_k, then from those over the
// keys; from the powers next to nothing. To add up either in two halves takes a third of that
// away, but 12 sums more to store and add a panel cost 4% (over d_k 64) and 1.3% (over the keys of
// a tile). log2(e) in the subtraction of the reference instead of in K, whose elements it rounds,
// saves 2.5% of the error and costs .5%.
#if defined(ATTNLAB_KERNEL_WEIGH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_WEIGH_INL_H_
#undef ATTNLAB_KERNEL_WEIGH_INL_H_
#else
#define ATTNLAB_KERNEL_WEIGH_INL_H_
#endif

#include <hwy/highway.h>

#include "attnlab/attention/kernel/exp-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is known of the rows of a group while they are weighed: each a vector a row [kRows, lanes].
template <class T>
struct GroupState {
  T* references;  // what scores are taken less, in all lanes
  T* sums;        // of the weights; for the output the sums of all, in all lanes
  T* rises;       // the largest shifted_to_whole of a score less its reference, as whole numbers
  T* ends;        // how many columns of the tile the row sees
};

// Before a tile of a row that has a reference.
template <class T>
HWY_INLINE void begin_row(const GroupState<T>& state, Index row, T reference) {
  const hn::ScalableTag<T> d;
  hn::Store(hn::Set(d, reference), d, state.references + row * kLanes<T>);
  hn::Store(hn::Zero(d), d, state.sums + row * kLanes<T>);
  hn::Store(hn::Zero(d), d, state.rises + row * kLanes<T>);
}

// As whole numbers without sign, which is where shifted_to_whole has its order.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V larger_as_whole(D d, V a, V b) {
  const hn::RebindToUnsigned<D> whole;
  return hn::BitCast(d, hn::Max(hn::BitCast(whole, a), hn::BitCast(whole, b)));
}

// For multiply_panel: stores the weights 2^(score - reference). Vector after vector is added to the
// sums, as weights_of_row does. With an end, columns of `tile` that the row does not see get 0.
template <class T, bool has_end>
struct StoreWeights {
  GroupState<T> state;
  View<T> tile;

  template <class D, class V, int vectors>
  HWY_INLINE void operator()(D d, const V (&scores)[vectors], int r, T* into) const {
    const Index at = r * kLanes<T>;
    const V reference = hn::Load(d, state.references + at);
    V sum = hn::Load(d, state.sums + at), rise = hn::Load(d, state.rises + at);
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) {
      V x = hn::Sub(scores[j], reference);
      if constexpr (has_end) {
        const auto column = static_cast<T>(into - tile.row(r) + j * kLanes<T>);
        const auto sees = hn::Lt(hn::Iota(d, column), hn::Load(d, state.ends + at));
        x = hn::IfThenElse(sees, x, hn::Set(d, 2 * PowerConstants<T>::kLowestTwo));
      }
      const V shifted = shifted_to_whole(d, x);
      rise = larger_as_whole(d, rise, shifted);
      const V w = power_of_two(d, x, shifted);
      hn::Store(w, d, into + j * kLanes<T>);
      sum = hn::Add(sum, w);
    }
    hn::Store(sum, d, state.sums + at);
    hn::Store(rise, d, state.rises + at);
  }
};

// The same for the first panel of rows that have no reference yet: it becomes their largest score
// there. The state begins with it.
template <class T>
struct StoreFirstWeights {
  GroupState<T> state;

  template <class D, class V, int vectors>
  HWY_INLINE void operator()(D d, const V (&scores)[vectors], int r, T* into) const {
    const Index at = r * kLanes<T>;
    V most = scores[0];
    HWY_UNROLL(4)
    for (int j = 1; j < vectors; ++j) most = hn::Max(most, scores[j]);
    hn::Store(hn::MaxOfLanes(d, most), d, state.references + at);
    hn::Store(hn::Zero(d), d, state.sums + at);
    hn::Store(hn::Zero(d), d, state.rises + at);
    StoreWeights<T, false>{state, {}}(d, scores, r, into);
  }
};

// Whether all scores of a row of the group are finite, and at most `slack` above its reference,
// once they are rounded. False too where one is below it by more than 2^23.
template <class T>
HWY_INLINE bool is_within(const GroupState<T>& state, Index row, T slack) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> whole;
  const auto most = shifted_to_whole(d, hn::Set(d, slack));
  const auto larger = larger_as_whole(d, hn::Load(d, state.rises + row * kLanes<T>), most);
  return hn::AllTrue(whole, hn::Eq(hn::BitCast(whole, larger), hn::BitCast(whole, most)));
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
