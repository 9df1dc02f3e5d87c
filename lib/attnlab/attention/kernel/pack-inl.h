// Rows that become the columns of panels, the right side of a product with a transpose. Included
// once for every target, see hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_PACK_INL_H_
#undef ATTNLAB_KERNEL_PACK_INL_H_
#else
#define ATTNLAB_KERNEL_PACK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Writes the transpose of a square, times `scale`, whose rows are as wide as 128 bits.
#if HWY_TARGET == HWY_SCALAR
template <class T>
inline constexpr Index kSquare = 1;

template <class T>
HWY_INLINE void transpose_square(View<const T> from, T scale, View<T> to) {
  *to.data = *from.data * scale;
}
#else
template <class T>
inline constexpr Index kSquare = Index{16} / sizeof(T);

HWY_INLINE void transpose_square(View<const float> from, float scale, View<float> to) {
  const hn::CappedTag<float, 4> d;
  const auto factor = hn::Set(d, scale);
  const auto row = [&](Index i) { return hn::Mul(factor, hn::LoadU(d, from.row(i))); };
  const auto row0 = row(0), row1 = row(1), row2 = row(2), row3 = row(3);
  const auto lower01 = hn::InterleaveLower(d, row0, row1);
  const auto lower23 = hn::InterleaveLower(d, row2, row3);
  const auto upper01 = hn::InterleaveUpper(d, row0, row1);
  const auto upper23 = hn::InterleaveUpper(d, row2, row3);
  hn::StoreU(hn::ConcatLowerLower(d, lower23, lower01), d, to.row(0));
  hn::StoreU(hn::ConcatUpperUpper(d, lower23, lower01), d, to.row(1));
  hn::StoreU(hn::ConcatLowerLower(d, upper23, upper01), d, to.row(2));
  hn::StoreU(hn::ConcatUpperUpper(d, upper23, upper01), d, to.row(3));
}

HWY_INLINE void transpose_square(View<const double> from, double scale, View<double> to) {
  const hn::CappedTag<double, 2> d;
  const auto factor = hn::Set(d, scale);
  const auto row0 = hn::Mul(factor, hn::LoadU(d, from.row(0)));
  const auto row1 = hn::Mul(factor, hn::LoadU(d, from.row(1)));
  hn::StoreU(hn::InterleaveLower(d, row0, row1), d, to.row(0));
  hn::StoreU(hn::InterleaveUpper(d, row0, row1), d, to.row(1));
}
#endif

// Packs `count` rows of k [count, depth], times `scale`, as the columns of panels: panel p holds
// rows p kPanel.. as [depth, kPanel], those beyond `count` as 0.
template <class T>
void pack_transposed(View<const T> k, Index count, Index depth, T scale, T* HWY_RESTRICT panels) {
  constexpr Index kPack = kSquare<T>;
  static_assert(kPanel<T> % kPack == 0);
  for (Index first = 0; first < round_up(count, kPanel<T>); first += kPack) {
    const View<T> panel{panels + first / kPanel<T> * kPanel<T> * depth + first % kPanel<T>,
                        kPanel<T>};
    Index done = 0;
    if (first + kPack <= count) {
      for (; done + kPack <= depth; done += kPack) {
        transpose_square({k.row(first) + done, k.stride}, scale, panel.from_row(done));
      }
    }
    for (; done < depth; ++done) {
      for (Index i = 0; i < kPack; ++i) {
        panel.at(done, i) = first + i < count ? k.at(first + i, done) * scale : T(0);
      }
    }
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
