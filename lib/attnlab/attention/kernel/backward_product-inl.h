// The product of a tile whose left operand stands transposed. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_BACKWARD_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_BACKWARD_PRODUCT_INL_H_
#undef ATTNLAB_KERNEL_BACKWARD_PRODUCT_INL_H_
#else
#define ATTNLAB_KERNEL_BACKWARD_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// C [rows, vectors lanes] += A^T B with A [depth, rows] and B [depth, vectors lanes]:
// multiply_panel whose factors stand side by side. Sums run over the depth in order and are added
// at the end.
template <class T, int rows, int vectors>
HWY_INLINE void multiply_transposed_panel(View<const T> a, View<const T> b, Index depth,
                                          View<T> c) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLane = kLanes<T>;
  V sums[rows][vectors];
  HWY_UNROLL(8)
  for (int r = 0; r < rows; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) sums[r][j] = hn::Zero(d);
  }
  HWY_UNROLL(1)
  for (Index k = 0; k < depth; ++k) {
    V operand[vectors];
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) operand[j] = hn::LoadU(d, b.row(k) + j * kLane);
    HWY_UNROLL(8)
    for (int r = 0; r < rows; ++r) {
      const V factor = hn::Set(d, a.row(k)[r]);
      HWY_UNROLL(4)
      for (int j = 0; j < vectors; ++j) sums[r][j] = hn::MulAdd(factor, operand[j], sums[r][j]);
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < rows; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) {
      T* into = c.row(r) + j * kLane;
      hn::StoreU(hn::Add(hn::LoadU(d, into), sums[r][j]), d, into);
    }
  }
}

// The same for `columns` columns, a multiple of the lanes.
template <class T, int rows>
void multiply_transposed_panels(View<const T> a, View<const T> b, Index depth, Index columns,
                                View<T> c) {
  constexpr Index kLane = kLanes<T>;
  Index j = 0;
  for (; j + kPanel<T> <= columns; j += kPanel<T>) {
    multiply_transposed_panel<T, rows, kVectors>(a, {b.data + j, b.stride}, depth,
                                                 {c.data + j, c.stride});
  }
  for (; j < columns; j += kLane) {
    multiply_transposed_panel<T, rows, 1>(a, {b.data + j, b.stride}, depth, {c.data + j, c.stride});
  }
}

// The same for any number of rows.
template <class T>
void add_transposed_product(Index rows, View<const T> a, View<const T> b, Index depth,
                            Index columns, View<T> c) {
  Index r = 0;
  for (; r + kRows <= rows; r += kRows) {
    multiply_transposed_panels<T, kRows>({a.data + r, a.stride}, b, depth, columns,
                                         {c.row(r), c.stride});
  }
  const View<const T> rest{a.data + r, a.stride};
  const View<T> into{c.row(r), c.stride};
  switch (rows - r) {
    case 1:
      return multiply_transposed_panels<T, 1>(rest, b, depth, columns, into);
    case 2:
      return multiply_transposed_panels<T, 2>(rest, b, depth, columns, into);
    case 3:
      return multiply_transposed_panels<T, 3>(rest, b, depth, columns, into);
    case 4:
      return multiply_transposed_panels<T, 4>(rest, b, depth, columns, into);
    case 5:
      return multiply_transposed_panels<T, 5>(rest, b, depth, columns, into);
    default:
      return;
  }
}

// C [rows, columns] = or += A B for any number of rows, see multiply_rows.
template <class T, bool add>
void multiply_all_rows(Index rows, View<const T> a, View<const T> b, Index panel_step, Index depth,
                       Index columns, View<T> c) {
  for (Index r = 0; r < rows; r += kRows) {
    multiply_rows<T, add>(std::min(kRows, rows - r), {a.row(r), a.stride}, b, panel_step, depth,
                          columns, {c.row(r), c.stride});
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
