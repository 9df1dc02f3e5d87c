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
using Philox = PhiloxLanes<WordLanes>;

// The number of each even lane, or odd one. They are such that shuffles within 16 bytes put values
// in order: position p of 16-byte part c has number p * parts + c.
HWY_INLINE Philox::Wide lane_numbers(bool odd) {
  HWY_ALIGN std::uint64_t numbers[Philox::kLanes];
  const std::size_t lanes = hn::Lanes(WordLanes()), parts = lanes / 4;
  for (std::size_t i = 0; i < lanes; ++i) {
    const std::size_t position = i / parts, part = i % parts;
    numbers[position % 2 * (lanes / 2) + part * 2 + position / 2] = i;
  }
  return hn::Load(Philox::D64(), numbers + (odd ? lanes / 2 : 0));
}

// The values of a vector of blocks, four a block, in the order of the lanes' numbers.
HWY_INLINE void put_in_order(Floats (&values)[4]) {
  const FloatLanes d;
  const hn::Repartition<double, FloatLanes> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, values[0], values[1]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, values[0], values[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, values[2], values[3]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, values[2], values[3]));
  values[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  values[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  values[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  values[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

// Blocks of one trial side by side, a lane each.
class BlockLanes {
 public:
  BlockLanes(const Philox& philox, std::uint64_t trial, bool odd)
      : philox_(philox),
        trial_(philox.of_trial(hn::Set(Philox::D64(), trial))),
        product_(Philox::first_product(lane_numbers(odd))) {}

  HWY_INLINE Philox::Counter next() {
    const Philox::D64 d;
    const Philox::Counter counter = Philox::counter(philox_.of_block(product_), trial_);
    const std::uint64_t step = hn::Lanes(WordLanes()) * std::uint64_t{kPhiloxMultiplier[0]};
    product_ = hn::Add(product_, hn::Set(d, step));
    return counter;
  }

 private:
  const Philox& philox_;
  Philox::OfTrial trial_;
  Philox::Wide product_;
};

// What some blocks give, for lanes of other trials all the same.
struct BlockTable {
  static constexpr std::size_t kBlocks = 64;

  // Of blocks [first, first + count) of a trial, kBlocks at most.
  BlockTable(const Philox& philox, std::size_t first, std::size_t blocks) : count(blocks) {
    const Philox::D64 d;
    for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
      const auto blocks_i = hn::Iota(d, first + i);
      const Philox::OfBlock block = philox.of_block(Philox::first_product(blocks_i));
      hn::Store(block.word0, d, word0 + i);
      hn::Store(block.word1, d, word1 + i);
      hn::Store(block.word2, d, word2 + i);
    }
  }

  std::size_t count;
  HWY_ALIGN std::uint64_t word0[kBlocks], word1[kBlocks], word2[kBlocks];
};

// Trials side by side, a lane each: the blocks of the table of some, then of the next.
class TrialLanes {
 public:
  TrialLanes(const Philox& philox, const BlockTable& blocks, std::uint64_t first_trial, bool odd)
      : philox_(philox),
        blocks_(blocks),
        trials_(hn::Add(hn::Set(Philox::D64(), first_trial), lane_numbers(odd))),
        given_(philox.of_trial(trials_)) {}

  HWY_INLINE Philox::Counter next() {
    const Philox::D64 d;
    if (block_ == blocks_.count) {
      block_ = 0;
      trials_ = hn::Add(trials_, hn::Set(d, std::uint64_t{hn::Lanes(WordLanes())}));
      given_ = philox_.of_trial(trials_);
    }
    const std::size_t i = block_++;
    return Philox::counter(
        {hn::Set(d, blocks_.word0[i]), hn::Set(d, blocks_.word1[i]), hn::Set(d, blocks_.word2[i])},
        given_);
  }

 private:
  const Philox& philox_;
  const BlockTable& blocks_;
  std::size_t block_ = 0;
  Philox::Wide trials_;
  Philox::OfTrial given_;
};

// Writes the values of BlockLanes to out [length].
class ToBlocks {
 public:
  explicit ToBlocks(std::span<float> out) : out_(out) {}

  HWY_INLINE void operator()(const Floats (&values)[4]) {
    const FloatLanes d;
    const std::size_t lanes = hn::Lanes(d);
    if (out_.size() >= 4 * lanes) {
      for (std::size_t r = 0; r < 4; ++r) hn::StoreU(values[r], d, out_.data() + r * lanes);
      out_ = out_.subspan(4 * lanes);
      return;
    }
    HWY_ALIGN float last[4 * Philox::kLanes];
    for (std::size_t r = 0; r < 4; ++r) hn::Store(values[r], d, last + r * lanes);
    std::copy_n(last, out_.size(), out_.begin());
    out_ = {};
  }

 private:
  std::span<float> out_;
};

// Stores each 16-byte part of a vector `stride` values after the one before.
template <class D>
HWY_INLINE void store_parts(D d, hn::Vec<D> parts, float* HWY_RESTRICT to, std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(parts, d, to);
  } else {
    const hn::Half<D> half;
    store_parts(half, hn::LowerHalf(half, parts), to, stride);
    store_parts(half, hn::UpperHalf(half, parts), to + hn::Lanes(half) / 4 * stride, stride);
  }
}

// Writes the values of TrialLanes to out [trials, length], from column `first` on those of `blocks`
// blocks.
class ToTrials {
 public:
  ToTrials(std::span<float> out, std::size_t length, std::size_t first, std::size_t blocks)
      : out_(out), length_(length), first_(first), end_(first + 4 * blocks), column_(first) {}

  HWY_INLINE void operator()(const Floats (&values)[4]) {
    const FloatLanes d;
    const std::size_t lanes = hn::Lanes(d);
    float* const to = out_.data() + column_;
    if (out_.size() >= lanes * length_ && column_ + 4 <= length_) {
      for (std::size_t r = 0; r < 4; ++r) {
        store_parts(d, values[r], to + r * (lanes / 4) * length_, length_);
      }
    } else {
      HWY_ALIGN float last[4 * Philox::kLanes];
      for (std::size_t r = 0; r < 4; ++r) hn::Store(values[r], d, last + r * lanes);
      const std::size_t count = std::min<std::size_t>(4, length_ - column_);
      const std::size_t trials = std::min(lanes, out_.size() / length_);
      for (std::size_t i = 0; i < trials; ++i) std::copy_n(last + 4 * i, count, to + i * length_);
    }
    column_ += 4;
    if (column_ == end_) {
      column_ = first_;
      out_ = out_.subspan(std::min(lanes * length_, out_.size()));
    }
  }

 private:
  std::span<float> out_;
  std::size_t length_, first_, end_, column_;
};

// The words of some vectors of blocks, [vectors, 4, lanes].
struct WordTile {
  // What they need stays in the first cache.
  static constexpr std::size_t kVectors = 48;

  HWY_INLINE Words word(std::size_t vector, std::size_t word) const {
    return hn::Load(WordLanes(), words + vector * Philox::kWords + word * Philox::kLanes);
  }

  std::size_t vectors = 0;
  HWY_ALIGN std::uint32_t words[kVectors * Philox::kWords];
};

// A transform of each vector of blocks by itself: operator()(const Words (&)[4], Floats (&)[4]).
template <class Transform>
struct VectorByVector {
  template <class Sink>
  HWY_INLINE void operator()(const WordTile& tile, Sink& sink) const {
    for (std::size_t v = 0; v < tile.vectors; ++v) {
      Floats values[4];
      Transform()({tile.word(v, 0), tile.word(v, 1), tile.word(v, 2), tile.word(v, 3)}, values);
      sink(values);
    }
  }
};

// Puts the values of a vector of blocks, that come word by word, where `To` writes them.
template <class To>
class InOrder {
 public:
  explicit InOrder(const To& to) : to_(to) {}
  HWY_INLINE void operator()(Floats (&values)[4]) {
    put_in_order(values);
    to_(values);
  }

 private:
  To to_;
};

// The bits of a tile are all made before its values, since each loop alone keeps a processor busy
// without a wait.
template <class Source, class Transform, class To>
HWY_INLINE void draw_vectors(const Philox& philox, Source even, Source odd, std::size_t vectors,
                             const Transform& transform, const To& to) {
  InOrder<To> sink(to);
  WordTile tile;
  for (; vectors > 0; vectors -= tile.vectors) {
    tile.vectors = std::min(WordTile::kVectors, vectors);
    philox.write(even, odd, tile.vectors, tile.words);
    transform(tile, sink);
  }
}

// Fills out [trials, length]. `transform` makes values of words: operator()(const WordTile&, Sink&)
// calls sink(Floats (&)[4]) with those of each vector of the tile in turn, word by word.
template <class Transform>
void draw_in_vectors(const Draw& draw, std::span<float> out, const Transform& transform) {
  if (out.empty()) return;
  const std::size_t lanes = hn::Lanes(WordLanes());
  const std::size_t blocks = draw.blocks(), trials = out.size() / draw.length;
  const Philox philox(draw.seed, draw.stream);
  // Trials side by side as long as they fill all lanes, and to the end where that takes less.
  const auto vectors_of = [lanes](std::size_t count) { return (count + lanes - 1) / lanes; };
  const std::size_t rest = trials % lanes;
  const std::size_t alone = rest * vectors_of(blocks) <= blocks ? rest : 0;
  const auto beside = out.first((trials - alone) * draw.length);
  for (std::size_t first = 0; first < blocks && !beside.empty(); first += BlockTable::kBlocks) {
    const BlockTable table(philox, first, std::min(BlockTable::kBlocks, blocks - first));
    draw_vectors(philox, TrialLanes(philox, table, draw.trial, false),
                 TrialLanes(philox, table, draw.trial, true),
                 vectors_of(trials - alone) * table.count, transform,
                 ToTrials(beside, draw.length, 4 * first, table.count));
  }
  for (std::size_t i = trials - alone; i < trials; ++i) {
    draw_vectors(philox, BlockLanes(philox, draw.trial + i, false),
                 BlockLanes(philox, draw.trial + i, true), vectors_of(blocks), transform,
                 ToBlocks(out.subspan(i * draw.length, draw.length)));
  }
}

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
