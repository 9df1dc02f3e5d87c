#include "attnlab/attention/kernel/product.h"

#include <algorithm>

#include "attnlab/attention/kernel/workspace.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/attention/kernel/product.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

// Depth and columns that are packed at once: 128 KB of float32, in the second cache.
inline constexpr Index kPackedDepth = 256, kPackedColumns = 128;
// Off the powers of two, where rows would share the banks of the first cache.
inline constexpr Index kLeftStride = kPackedDepth + 16, kTileStride = kPackedColumns + 16;

// Columns [0, columns) of b as panels, those beyond in the last one as 0.
template <class T>
void pack_columns(View<const T> b, Index depth, Index columns, T* HWY_RESTRICT panels) {
  for (Index first = 0; first < columns; first += kPanel<T>) {
    const Index count = std::min(kPanel<T>, columns - first);
    T* HWY_RESTRICT panel = panels + first * depth;
    for (Index k = 0; k < depth; ++k) {
      T* end = std::copy_n(b.row(k) + first, count, panel + k * kPanel<T>);
      std::fill_n(end, kPanel<T> - count, T(0));
    }
  }
}

// c = start + tile, or c + tile where there is no start.
template <class T>
HWY_INLINE void add_row(const T* HWY_RESTRICT tile, const T* start, Index columns, T* c) {
  if (start == nullptr) start = c;
  for (Index j = 0; j < columns; ++j) c[j] = start[j] + tile[j];
}

template <class T>
void multiply_all(const Product<T>& product) {
  using W = Workspace;
  W& memory = W::mine();
  memory.reset(W::bytes_of<T>(kPackedDepth * kPackedColumns) + W::bytes_of<T>(kRows * kLeftStride) +
               W::bytes_of<T>(kRows * kTileStride) + W::bytes_of<T>(kPackedColumns));
  T* const panels = memory.take<T>(kPackedDepth * kPackedColumns);
  const View<T> left{memory.take<T>(kRows * kLeftStride), kLeftStride};
  const View<T> tile{memory.take<T>(kRows * kTileStride), kTileStride};
  T* const zeros = memory.take<T>(kPackedColumns);
  std::fill_n(zeros, kPackedColumns, T(0));

  for (Index j = 0; j < product.columns; j += kPackedColumns) {
    const Index columns = std::min(kPackedColumns, product.columns - j);
    const Index whole = round_up(columns, kLanes<T>);
    const T* const bias = product.bias != nullptr ? product.bias + j : zeros;
    // Once more where there is no depth at all: then the product is the bias.
    for (Index k = 0; k == 0 || k < product.depth; k += kPackedDepth) {
      const Index depth = std::min(kPackedDepth, product.depth - k);
      pack_columns<T>({product.b + k * product.b_stride + j, product.b_stride}, depth, columns,
                      panels);
      for (Index i = 0; i < product.rows; i += kRows) {
        const Index rows = std::min(kRows, product.rows - i);
        for (Index r = 0; r < rows; ++r) {
          std::copy_n(product.a + (i + r) * product.a_stride + k, depth, left.row(r));
        }
        multiply_rows<T>(rows, View<const T>{left.data, left.stride}, {panels, kPanel<T>},
                         kPanel<T> * depth, depth, whole, tile, Store{});
        for (Index r = 0; r < rows; ++r) {
          add_row(tile.row(r), k == 0 ? bias : nullptr, columns,
                  product.c + (i + r) * product.c_stride + j);
        }
      }
    }
  }
}

void multiply_float(const Product<float>& product) { multiply_all(product); }
void multiply_double(const Product<double>& product) { multiply_all(product); }

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(multiply_float);
HWY_EXPORT(multiply_double);

template <>
void multiply(const Product<float>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_float)(product);
}
template <>
void multiply(const Product<double>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_double)(product);
}

}  // namespace attnlab
#endif
