// The weights of a block until they are whole. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_KEPT_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_KEPT_WEIGHTS_INL_H_
#undef ATTNLAB_KERNEL_KEPT_WEIGHTS_INL_H_
#else
#define ATTNLAB_KERNEL_KEPT_WEIGHTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "attnlab/attention/kernel/tile-inl.h"
#include "attnlab/attention/kernel/workspace.h"
#include "attnlab/attention/mask.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Writes rows of a matrix that is not read again soon. A large one goes past the caches, where the
// processor can: to store in them it would first read what stands there. Whoever wrote it so has to
// call hwy::FlushStream before others read.
template <class T>
class RowWriter {
 public:
  explicit RowWriter(Index size) : streams_(size * Index{sizeof(T)} >= kLarge) {}

  // into = factor row. The factor is in two parts, so that each element is rounded once where
  // multiply and add are fused.
  HWY_INLINE void scaled(const T* HWY_RESTRICT row, Index count, double factor,
                         T* HWY_RESTRICT into) const {
    const auto most = static_cast<T>(factor);
    const auto rest = static_cast<T>(factor - static_cast<double>(most));
    const auto product_at = [&](auto d, Index j) {
      const auto x = hn::LoadU(d, row + j);
      return hn::MulAdd(x, hn::Set(d, most), hn::Mul(x, hn::Set(d, rest)));
    };
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    write(
        count, into, [&](Index j) { return product_at(d, j); },
        [&](Index j) { return hn::GetLane(product_at(one, j)); });
  }
  HWY_INLINE void zeros(Index count, T* into) const {
    const hn::ScalableTag<T> d;
    write(
        count, into, [&](Index) { return hn::Zero(d); }, [](Index) { return T(0); });
  }

 private:
  static constexpr Index kLarge = Index{1} << 24;  // about what caches hold

  template <class Vectors, class Elements>
  HWY_INLINE void write(Index count, T* into, const Vectors& vector_at,
                        const Elements& element_at) const {
    const hn::ScalableTag<T> d;
    Index j = 0;
    if (streams_) {
      constexpr auto kBytes = static_cast<std::uintptr_t>(kLanes<T>) * sizeof(T);
      for (; j < count && reinterpret_cast<std::uintptr_t>(into + j) % kBytes != 0; ++j) {
        into[j] = element_at(j);
      }
      for (; j + kLanes<T> <= count; j += kLanes<T>) hn::Stream(vector_at(j), d, into + j);
    } else {
      for (; j + kLanes<T> <= count; j += kLanes<T>) hn::StoreU(vector_at(j), d, into + j);
    }
    for (; j < count; ++j) into[j] = element_at(j);
  }

  bool streams_;
};

// The weights of a block, which are weighed in here tile by tile, each relative to the reference
// that its row had at the time.
//
// Rows are written as soon as they are whole, as fast as memory takes them: on a Zen 3 6 of 109 ms
// for 8 heads of 2048 queries at d_k 64. To write them in parts after the panels of later products,
// in the hope that the multipliers work meanwhile, was no faster.
template <class T>
class KeptWeights {
 public:
  KeptWeights() = default;
  // Room for the tiles from `first` on, in `memory`.
  KeptWeights(Workspace& memory, Index rows, Index first, Index tiles)
      : first_(first),
        weights_{memory.take<T>(rows * stride(tiles)), stride(tiles)},
        references_{memory.take<T>(rows * tiles), tiles} {}
  static std::size_t bytes(Index rows, Index tiles) {
    return Workspace::bytes_of<T>(rows * stride(tiles)) + Workspace::bytes_of<T>(rows * tiles);
  }

  // Where the weights of row r with the keys of a tile belong, those of the rows after it likewise.
  View<T> from_row(Index r, KeyRange tile) const {
    return {weights_.row(r) + tile_of(tile) * kTileKeys, weights_.stride};
  }
  void set_reference(Index r, KeyRange tile, T reference) {
    references_.at(r, tile_of(tile)) = reference;
  }

  // Row r, of `keys` weights, as it sees the keys `seen`: those kept times factor_of(reference),
  // and 0 elsewhere. There are none of tiles that the row sees nothing of.
  template <class F>
  void write(Index r, KeyRange seen, Index keys, const F& factor_of, const RowWriter<T>& writer,
             T* into) const {
    const Index first = seen.first / kTileKeys * kTileKeys;
    writer.zeros(first, into);
    for (Index begin = first; begin < seen.last; begin += kTileKeys) {
      const KeyRange tile{begin, std::min(seen.last, begin + kTileKeys)};
      writer.scaled(from_row(r, tile).data, tile.last - begin,
                    factor_of(references_.at(r, tile_of(tile))), into + begin);
    }
    writer.zeros(keys - seen.last, into + seen.last);
  }

 private:
  // From one row to the next: in the first cache as far apart as with kScoreStride, for there the
  // rows of a group would meet in the same lines.
  static constexpr Index stride(Index tiles) {
    return kScoreStride + round_up(std::max<Index>(0, tiles - 1) * kTileKeys, 4 * kTileKeys);
  }
  Index tile_of(KeyRange keys) const { return keys.first / kTileKeys - first_; }

  Index first_ = 0;
  View<T> weights_{}, references_{};  // [rows, stride], [rows, tiles]
};

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
