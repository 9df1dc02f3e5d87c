// The loop from counters to values in vectors. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_CORE_DRAW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_CORE_DRAW_INL_H_
#undef ATTNLAB_CORE_DRAW_INL_H_
#else
#define ATTNLAB_CORE_DRAW_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attnlab/core/draw.h"
#include "attnlab/core/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA

using WordLanes = hn::CappedTag<std::uint32_t, 16>;
using FloatLanes = hn::RebindToFloat<WordLanes>;
using Words = hn::Vec<WordLanes>;
using Floats = hn::Vec<FloatLanes>;

// Stores the values of a vector of blocks, which come in the order of PhiloxBlocks, block by block.
HWY_INLINE void store_in_order(const Floats (&block)[4], float* HWY_RESTRICT to) {
  const FloatLanes d;
  const hn::Repartition<double, FloatLanes> pairs;
  const std::size_t lanes = hn::Lanes(d);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, block[0], block[1]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, block[0], block[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, block[2], block[3]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, block[2], block[3]));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + lanes);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * lanes);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * lanes);
}

// Fills out [trials, length]. `transform` makes vectors of values of the vectors of words of a
// block: operator()(const Words (&)[4], Floats (&)[4]). The bits of some blocks are all made before
// their values, since each loop alone keeps a processor busy without a wait.
template <class Transform>
void draw_in_vectors(const Draw& draw, std::span<float> out, const Transform& transform) {
  if (out.empty()) return;
  using Source = PhiloxBlocks<WordLanes>;
  HWY_ALIGN float values[Source::kVectors * 4 * Source::kLanes];
  const std::size_t lanes = hn::Lanes(WordLanes());
  const std::size_t blocks = out.size() / draw.length * draw.blocks();
  Source source(draw);
  for (std::size_t first = 0; first < blocks; first += Source::kVectors * lanes) {
    const std::size_t count = std::min(Source::kVectors * lanes, blocks - first);
    const std::size_t vectors = (count + lanes - 1) / lanes;
    source.next(vectors);
    const bool in_place = draw.length % 4 == 0 && count % lanes == 0;
    float* const to = in_place ? out.data() + 4 * first : values;
    for (std::size_t v = 0; v < vectors; ++v) {
      const Words words[4] = {source.word(v, 0), source.word(v, 1), source.word(v, 2),
                              source.word(v, 3)};
      Floats block[4];
      transform(words, block);
      store_in_order(block, to + v * 4 * lanes);
    }
    if (!in_place) place_blocks(draw, first, {values, 4 * count}, out);
  }
}

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
