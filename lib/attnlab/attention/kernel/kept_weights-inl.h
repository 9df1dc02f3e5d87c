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

  // into = factor row, where each element is rounded once: the factor is in two parts.
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

// The weights of a block as they were weighed, tile by tile, each relative to the reference that
// its row had at the time.
template <class T>
class KeptWeights {
 public:
  KeptWeights() = default;
  // Room for the tiles from `first` on, in `memory`.
  KeptWeights(Workspace& memory, Index rows, Index first, Index tiles)
      : first_(first),
        weights_{memory.take<T>(rows * tiles * kTileKeys), tiles * kTileKeys},
        references_{memory.take<T>(rows * tiles), tiles} {}
  static std::size_t bytes(Index rows, Index tiles) {
    return Workspace::bytes_of<T>(rows * tiles * kTileKeys) + Workspace::bytes_of<T>(rows * tiles);
  }

  void keep(Index r, KeyRange keys, const T* weights, T reference) {
    const Index tile = keys.first / kTileKeys - first_;
    std::copy_n(weights, keys.last - keys.first, weights_.row(r) + tile * kTileKeys);
    references_.at(r, tile) = reference;
  }

  // Row r, of `keys` weights, as it sees the keys `seen`: those kept times factor_of(reference),
  // and 0 elsewhere. There are none of tiles that the row sees nothing of.
  template <class F>
  void write(Index r, KeyRange seen, Index keys, const F& factor_of, const RowWriter<T>& writer,
             T* into) const {
    const Index first = seen.first / kTileKeys * kTileKeys;
    writer.zeros(first, into);
    for (Index begin = first; begin < seen.last; begin += kTileKeys) {
      const Index tile = begin / kTileKeys - first_;
      writer.scaled(weights_.row(r) + tile * kTileKeys, std::min(kTileKeys, seen.last - begin),
                    factor_of(references_.at(r, tile)), into + begin);
    }
    writer.zeros(keys - seen.last, into + seen.last);
  }

 private:
  Index first_ = 0;
  View<T> weights_{}, references_{};  // [rows, tiles kTileKeys], [rows, tiles]
};

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
