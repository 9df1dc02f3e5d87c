// The two matrix products of a tile of attention, in registers. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_TILE_INL_H_
#undef ATTNLAB_KERNEL_TILE_INL_H_
#else
#define ATTNLAB_KERNEL_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "attnlab/core/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A micro-kernel holds kRows x kVectors sums in registers beside kVectors operands and one
// broadcast: 6 x 4 where there are 32 registers, 6 x 2 where there are 16. Each step takes
// kVectors + kRows loads for kRows kVectors fused multiply-adds, which keeps both multipliers busy.
inline constexpr Index kRows = 6;
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr Index kVectors = 4;
#else
inline constexpr Index kVectors = 2;
#endif

template <class T>
inline constexpr Index kLanes = HWY_LANES(T);
// Columns of one panel: what a micro-kernel does at once.
template <class T>
inline constexpr Index kPanel = kLanes<T>* kVectors;

// Keys a tile; a multiple of two vectors. With kRows queries the scores take 6 KB of float32,
// which stay in the first cache.
inline constexpr Index kTileKeys = 256;
// From one row of scores to the next. Rows a power of two apart lie in the same banks of the first
// cache, and loads from them wait for each other: a third of the speed where all else is there.
inline constexpr Index kScoreStride = kTileKeys + 16;

constexpr Index round_up(Index count, Index multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// A row-major matrix somewhere else.
template <class T>
struct View {
  T* data;
  Index stride;

  T* row(Index i) const { return data + i * stride; }
  T& at(Index i, Index j) const { return row(i)[j]; }
  View from_row(Index i) const { return {row(i), stride}; }
};

// The transpose of a row-major matrix: at(i, j) lies beside at(i + 1, j).
template <class T>
struct TransposedView {
  T* data;
  Index stride;

  T& at(Index i, Index j) const { return data[j * stride + i]; }
  TransposedView from_row(Index i) const { return {data + i, stride}; }
};

// What becomes of a row of sums, which goes to `into` from column 0 on.
struct Store {
  template <class D, class V, int vectors, class T>
  HWY_INLINE void operator()(D d, const V (&sums)[vectors], int, T* into) const {
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) hn::StoreU(sums[j], d, into + j * kLanes<T>);
  }
};
// Added at the end: long sums in pieces lose fewer digits.
struct AddTo {
  template <class D, class V, int vectors, class T>
  HWY_INLINE void operator()(D d, const V (&sums)[vectors], int, T* into) const {
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) {
      T* at = into + j * kLanes<T>;
      hn::StoreU(hn::Add(hn::LoadU(d, at), sums[j]), d, at);
    }
  }
};

// Divided by the row's divisor [rows, lanes], which is the end of a softmax.
template <class T>
struct StoreQuotient {
  const T* divisors;

  template <class D, class V, int vectors>
  HWY_INLINE void operator()(D d, const V (&sums)[vectors], int r, T* into) const {
    const V divisor = hn::Load(d, divisors + r * kLanes<T>);
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) {
      hn::StoreU(hn::Div(sums[j], divisor), d, into + j * kLanes<T>);
    }
  }
};
// Added before to the row of `earlier` that is to end in `quotients`.
template <class T>
struct AddAndStoreQuotient {
  const T* divisors;
  View<T> earlier, quotients;

  template <class D, class V, int vectors>
  HWY_INLINE void operator()(D d, const V (&sums)[vectors], int r, T* into) const {
    const V divisor = hn::Load(d, divisors + r * kLanes<T>);
    const T* from = earlier.row(r) + (into - quotients.row(r));
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) {
      const V sum = hn::Add(hn::LoadU(d, from + j * kLanes<T>), sums[j]);
      hn::StoreU(hn::Div(sum, divisor), d, into + j * kLanes<T>);
    }
  }
};

// C [rows, vectors lanes] of A [rows, depth] B [depth, vectors lanes], A a view or the transpose of
// one, B packed: its rows are kPanel apart from each other. Sums run over the depth in order, one
// fused multiply-add each; `finish` takes them.
template <class T, int rows, int vectors, class Left, class Finish>
HWY_INLINE void multiply_panel(Left a, View<const T> b, Index depth, View<T> c, Finish finish) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr Index kLane = kLanes<T>;
  V sums[rows][vectors];
  HWY_UNROLL(8)
  for (int r = 0; r < rows; ++r) {
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) {
      sums[r][j] = hn::Zero(d);
    }
  }
  HWY_UNROLL(1)
  for (Index k = 0; k < depth; ++k) {
    V operand[vectors];
    HWY_UNROLL(4)
    for (int j = 0; j < vectors; ++j) operand[j] = hn::LoadU(d, b.row(k) + j * kLane);
    HWY_UNROLL(8)
    for (int r = 0; r < rows; ++r) {
      const V factor = hn::Set(d, a.at(r, k));
      HWY_UNROLL(4)
      for (int j = 0; j < vectors; ++j) sums[r][j] = hn::MulAdd(factor, operand[j], sums[r][j]);
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < rows; ++r) finish(d, sums[r], r, c.row(r));
}

// The same for `columns` columns, a multiple of the lanes: B is a row of panels, `panel_step` apart
// (kPanel for an ordinary matrix).
template <class T, int rows, class Left, class Finish>
void multiply_panels(Left a, View<const T> b, Index panel_step, Index depth, Index columns,
                     View<T> c, Finish finish) {
  constexpr Index kLane = kLanes<T>;
  Index j = 0;
  for (; j + kPanel<T> <= columns; j += kPanel<T>) {
    multiply_panel<T, rows, kVectors>(a, {b.data + j / kPanel<T> * panel_step, b.stride}, depth,
                                      {c.data + j, c.stride}, finish);
  }
  const T* rest = b.data + j / kPanel<T> * panel_step;
  for (; j < columns; j += kLane, rest += kLane) {
    multiply_panel<T, rows, 1>(a, {rest, b.stride}, depth, {c.data + j, c.stride}, finish);
  }
}

// The same for 1 to kRows rows.
template <class T, class Left, class Finish>
void multiply_rows(Index rows, Left a, View<const T> b, Index panel_step, Index depth,
                   Index columns, View<T> c, Finish finish) {
  switch (rows) {
    case 1:
      return multiply_panels<T, 1>(a, b, panel_step, depth, columns, c, finish);
    case 2:
      return multiply_panels<T, 2>(a, b, panel_step, depth, columns, c, finish);
    case 3:
      return multiply_panels<T, 3>(a, b, panel_step, depth, columns, c, finish);
    case 4:
      return multiply_panels<T, 4>(a, b, panel_step, depth, columns, c, finish);
    case 5:
      return multiply_panels<T, 5>(a, b, panel_step, depth, columns, c, finish);
    default:
      return multiply_panels<T, kRows>(a, b, panel_step, depth, columns, c, finish);
  }
}

// Rows of the next group, where so many are left. Three or fewer would leave the multipliers
// waiting, and so the last two groups share what is left.
inline Index rows_of_group(Index left) {
  constexpr Index kEnough = 4;
  if (left <= kRows) return left;
  return left - kRows < kEnough ? (left + 1) / 2 : kRows;
}

// The same for any number of rows.
template <class T, class Left, class Finish>
void multiply_all_rows(Index rows, Left a, View<const T> b, Index panel_step, Index depth,
                       Index columns, View<T> c, Finish finish) {
  for (Index r = 0; r < rows; r += kRows) {
    multiply_rows<T>(std::min(kRows, rows - r), a.from_row(r), b, panel_step, depth, columns,
                     c.from_row(r), finish);
  }
}

// `count` rows of `width` elements filled up with 0 to `padded`, which is where they stand if that
// is their width and else in `into` [count, padded].
template <class T>
View<const T> padded_rows(View<const T> rows, Index count, Index width, Index padded, T* into) {
  if (width == padded) return rows;
  for (Index i = 0; i < count; ++i) {
    T* row = into + i * padded;
    std::copy_n(rows.row(i), width, row);
    std::fill(row + width, row + padded, T(0));
  }
  return {into, padded};
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
