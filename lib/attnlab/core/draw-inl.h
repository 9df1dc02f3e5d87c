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

// The number of each lane of two vectors, side by side as in a Counter. They are such that
// interleaving within 16 bytes puts values in order: position p of 16-byte part c of a vector has
// number p * parts + c, and `apart` more in the second.
HWY_INLINE Words lane_numbers(std::uint32_t apart) {
  HWY_ALIGN std::uint32_t numbers[2 * Philox::kLanes], second[2 * Philox::kLanes];
  for (std::size_t i = 0; i < 2 * Philox::kLanes; ++i) {
    numbers[i] = static_cast<std::uint32_t>(i % 2 * (Philox::kLanes / 2) + i / 4);
    second[i] = static_cast<std::uint32_t>(i % 4 / 2);
  }
  const WordLanes d;
  return hn::Add(hn::Load(d, numbers), hn::Mul(hn::Load(d, second), hn::Set(d, apart)));
}

// Blocks of one trial side by side, a lane each.
class BlockLanes {
 public:
  BlockLanes(const Philox& philox, std::uint64_t trial)
      : philox_(philox),
        trial_(philox.of_trial(hn::Set(WordLanes(), static_cast<std::uint32_t>(trial)),
                               hn::Set(WordLanes(), static_cast<std::uint32_t>(trial >> 32)))),
        product_(Philox::first_products(lane_numbers(Philox::kLanes))),
        low_(Philox::low_products(0, lane_numbers(Philox::kLanes))) {}

  HWY_INLINE Philox::Counter next() {
    const Philox::D64 d;
    const Philox::Counter counter = Philox::counter(philox_.of_block(product_, low_), trial_);
    constexpr std::uint64_t kStep = 2 * Philox::kLanes * std::uint64_t{kPhiloxMultiplier[0]};
    product_.even = hn::Add(product_.even, hn::Set(d, kStep));
    product_.odd = hn::Add(product_.odd, hn::Set(d, kStep));
    low_ = hn::Add(low_, hn::Set(WordLanes(), static_cast<std::uint32_t>(kStep)));
    return counter;
  }

 private:
  const Philox& philox_;
  Philox::OfTrial trial_;
  Philox::Products product_;
  Words low_;  // of the products
};

// What the blocks of a trial give, for lanes of other trials all the same.
struct BlockTable {
  // Of longer trials the blocks fill lanes as well, without writing to as many places at once.
  static constexpr std::size_t kMost = 64;

  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  BlockTable(const Philox& philox, std::size_t blocks) : count(blocks) {
    const WordLanes d;
    HWY_ALIGN std::uint32_t words[2 * Philox::kLanes];
    for (std::size_t i = 0; i <= count; ++i) {
      // After the last comes the first.
      const Words block = hn::Set(d, static_cast<std::uint32_t>(i % count));
      const Philox::OfBlock given =
          philox.of_block(Philox::first_products(block), Philox::low_products(0, block));
      const auto put = [&](Words value, std::uint32_t* to) {
        hn::Store(value, d, words);
        std::copy_n(words, 2, to + 2 * i);
      };
      put(given.word0, word0);
      put(given.word1, word1);
      put(given.word2, word2);
    }
  }

  // Of blocks i and i + 1, two lanes each, in every 16 bytes.
  static HWY_INLINE Words two(const std::uint32_t* word, std::size_t i) {
    return hn::LoadDup128(WordLanes(), word + 2 * i);
  }

  std::size_t count;
  HWY_ALIGN std::uint32_t word0[2 * kMost + 2], word1[2 * kMost + 2], word2[2 * kMost + 2];
};

// Trials side by side, a lane each: all blocks of some, then those of the next.
class TrialLanes {
 public:
  TrialLanes(const Philox& philox, const BlockTable& blocks, std::uint64_t first_trial)
      : philox_(philox), blocks_(blocks), trial_(first_trial), given_(given(0)) {}

  HWY_INLINE Philox::Counter next() {
    if (HWY_UNLIKELY(block_ + 1 >= blocks_.count)) turn();
    const std::size_t i = block_;
    block_ += 2;
    return Philox::counter({BlockTable::two(blocks_.word0, i), BlockTable::two(blocks_.word1, i),
                            BlockTable::two(blocks_.word2, i)},
                           given_);
  }

 private:
  // To the next trials, or the last block of some and the first of the next.
  HWY_NOINLINE void turn() {
    for (; block_ >= blocks_.count; block_ -= blocks_.count) trial_ += Philox::kLanes;
    given_ = given(block_ + 1 == blocks_.count ? Philox::kLanes : 0);
  }
  // What trials from trial_ on give, those of the second vector `apart` after the first's.
  HWY_INLINE Philox::OfTrial given(std::uint32_t apart) const {
    const WordLanes d;
    const Words first = hn::Set(d, static_cast<std::uint32_t>(trial_));
    const Words low = hn::Add(first, lane_numbers(apart));
    // Where the lower half began again, the upper is one more.
    const Words upper = hn::Sub(hn::Set(d, static_cast<std::uint32_t>(trial_ >> 32)),
                                hn::VecFromMask(d, hn::Lt(low, first)));
    return philox_.of_trial(low, upper);
  }

  const Philox& philox_;
  const BlockTable& blocks_;
  std::size_t block_ = 0;
  std::uint64_t trial_;
  Philox::OfTrial given_;
};

// Writes the values of BlockLanes to out [length].
class ToBlocks {
 public:
  explicit ToBlocks(std::span<float> out) : out_(out) {}

  template <std::size_t count>
  HWY_INLINE void operator()(const Floats (&lower)[count], const Floats (&upper)[count]) {
    const FloatLanes d;
    const std::size_t lanes = hn::Lanes(d);
    if (out_.size() >= 2 * count * lanes) {
      for (std::size_t i = 0; i < count; ++i) {
        hn::StoreU(lower[i], d, out_.data() + 2 * i * lanes);
        hn::StoreU(upper[i], d, out_.data() + (2 * i + 1) * lanes);
      }
      out_ = out_.subspan(2 * count * lanes);
    } else {
      for (std::size_t i = 0; i < count; ++i) put_last(lower[i], upper[i]);
    }
  }

 private:
  HWY_INLINE void put_last(Floats lower, Floats upper) {
    const FloatLanes d;
    HWY_ALIGN float last[Philox::kWords];
    hn::Store(lower, d, last);
    hn::Store(upper, d, last + hn::Lanes(d));
    const std::size_t size = std::min(2 * hn::Lanes(d), out_.size());
    std::copy_n(last, size, out_.begin());
    out_ = out_.subspan(size);
  }

  std::span<float> out_;
};

// Stores each 16-byte part of vectors `stride` values after the one before, those of the second
// vector beside those of the first.
template <class D>
HWY_INLINE void store_parts(D d, hn::Vec<D> first, hn::Vec<D> second, float* HWY_RESTRICT to,
                            std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(first, d, to);
    hn::StoreU(second, d, to + 4);
  } else if constexpr (hn::MaxLanes(D()) == 8) {
    hn::StoreU(hn::ConcatLowerLower(d, second, first), d, to);
    hn::StoreU(hn::ConcatUpperUpper(d, second, first), d, to + stride);
  } else {
    const hn::Half<D> half;
    store_parts(half, hn::LowerHalf(half, first), hn::LowerHalf(half, second), to, stride);
    store_parts(half, hn::UpperHalf(half, first), hn::UpperHalf(half, second),
                to + hn::Lanes(half) / 4 * stride, stride);
  }
}

// Writes the values of TrialLanes to out [trials, length].
class ToTrials {
 public:
  ToTrials(std::span<float> out, std::size_t length) : out_(out), length_(length) {}

  template <std::size_t count>
  HWY_INLINE void operator()(const Floats (&lower)[count], const Floats (&upper)[count]) {
    const FloatLanes d;
    const std::size_t lanes = hn::Lanes(Philox::D64());
    if (count == 2 && out_.size() >= lanes * length_ && column_ + 8 <= length_) {
      float* const to = out_.data() + column_;
      store_parts(d, lower[0], lower[count - 1], to, length_);
      store_parts(d, upper[0], upper[count - 1], to + lanes / 2 * length_, length_);
      advance(2);
    } else {
      for (std::size_t i = 0; i < count; ++i) put_some(lower[i], upper[i]);
    }
  }

 private:
  // Of trials that are not there, or a block that is not whole.
  HWY_INLINE void put_some(Floats lower, Floats upper) {
    const FloatLanes d;
    const std::size_t lanes = hn::Lanes(Philox::D64());
    HWY_ALIGN float some[Philox::kWords];
    hn::Store(lower, d, some);
    hn::Store(upper, d, some + 2 * lanes);
    const std::size_t count = std::min<std::size_t>(4, length_ - column_);
    const std::size_t trials = std::min(lanes, out_.size() / length_);
    for (std::size_t i = 0; i < trials; ++i) {
      std::copy_n(some + 4 * i, count, out_.data() + i * length_ + column_);
    }
    advance(1);
  }
  HWY_INLINE void advance(std::size_t blocks) {
    column_ += 4 * blocks;
    if (column_ < length_) return;
    column_ = 0;
    out_ = out_.subspan(std::min(hn::Lanes(Philox::D64()) * length_, out_.size()));
  }

  std::span<float> out_;
  std::size_t length_, column_ = 0;
};

// The words of some vectors of blocks: [vectors, 2, lanes, 2], words 0 and 2 of all and then 1
// and 3.
struct WordTile {
  // What they need stays in the first cache. An even number, so that transforms may take two.
  static constexpr std::size_t kVectors = 96;

  HWY_INLINE Words even(std::size_t vector) const {
    return hn::Load(WordLanes(), words + vector * Philox::kWords);
  }
  HWY_INLINE Words odd(std::size_t vector) const {
    return hn::Load(WordLanes(), words + vector * Philox::kWords + 2 * Philox::kLanes);
  }

  std::size_t vectors = 0;  // one more is there when this is odd
  HWY_ALIGN std::uint32_t words[kVectors * Philox::kWords];
};

// A transform of each vector by itself: operator()(const Words (&)[2], Floats (&)[2]).
template <class Transform>
struct VectorByVector {
  template <class Sink>
  HWY_INLINE void operator()(const WordTile& tile, Sink& sink) const {
    std::size_t v = 0;
    for (; v + 2 <= tile.vectors; v += 2) several<2>(tile, v, sink);
    if (v < tile.vectors) several<1>(tile, v, sink);
  }

 private:
  template <std::size_t count, class Sink>
  static HWY_INLINE void several(const WordTile& tile, std::size_t v, Sink& sink) {
    Floats even[count], odd[count];
    for (std::size_t i = 0; i < count; ++i) {
      Floats values[2];
      Transform()({tile.even(v + i), tile.odd(v + i)}, values);
      even[i] = values[0];
      odd[i] = values[1];
    }
    sink(even, odd);
  }
};

// Puts the values of a vector of blocks, that come as the words do, where `To` writes them.
template <class To>
class InOrder {
 public:
  explicit InOrder(const To& to) : to_(to) {}
  template <std::size_t count>
  HWY_INLINE void operator()(const Floats (&even)[count], const Floats (&odd)[count]) {
    const FloatLanes d;
    Floats lower[count], upper[count];
    for (std::size_t i = 0; i < count; ++i) {
      lower[i] = hn::InterleaveLower(d, even[i], odd[i]);
      upper[i] = hn::InterleaveUpper(d, even[i], odd[i]);
    }
    to_(lower, upper);
  }

 private:
  To to_;
};

// The bits of a tile are all made before its values, since each loop alone keeps a processor busy
// without a wait.
template <class Source, class Transform, class To>
HWY_INLINE void draw_vectors(const Philox& philox, Source source, std::size_t vectors,
                             const Transform& transform, const To& to) {
  InOrder<To> sink(to);
  WordTile tile;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (; vectors > 0; vectors -= tile.vectors) {
    tile.vectors = std::min(WordTile::kVectors, vectors);
    philox.write(source, tile.vectors + tile.vectors % 2, tile.words);
    transform(tile, sink);
  }
}

// Fills out [trials, length]. `transform` makes values of words: operator()(const WordTile&, Sink&)
// calls sink({even..}, {odd..}) with those of the words of each vector of the tile in turn.
template <class Transform>
void draw_in_vectors(const Draw& draw, std::span<float> out, const Transform& transform) {
  if (out.empty()) return;
  const std::size_t lanes = hn::Lanes(Philox::D64());
  const std::size_t blocks = draw.blocks(), trials = out.size() / draw.length;
  const Philox philox(draw.seed, draw.stream);
  const auto vectors_of = [lanes](std::size_t count) { return (count + lanes - 1) / lanes; };
  // Trials side by side as long as they fill all lanes, and to the end where that takes less.
  std::size_t alone = trials;
  if (blocks <= BlockTable::kMost) {
    alone = trials % lanes;
    if (alone * vectors_of(blocks) > blocks) alone = 0;
  }
  const std::size_t beside = trials - alone;
  if (beside > 0) {
    const BlockTable table(philox, blocks);
    draw_vectors(philox, TrialLanes(philox, table, draw.trial), vectors_of(beside) * blocks,
                 transform, ToTrials(out.first(beside * draw.length), draw.length));
  }
  for (std::size_t i = beside; i < trials; ++i) {
    draw_vectors(philox, BlockLanes(philox, draw.trial + i), vectors_of(blocks), transform,
                 ToBlocks(out.subspan(i * draw.length, draw.length)));
  }
}

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
