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

// The parts of 16 bytes of a vector.
inline constexpr std::size_t kParts = Philox::kLanes / 2;

// number(position, part) for the four positions of each part of a Counter's words.
template <class Number>
HWY_INLINE Words lane_numbers(const Number& number) {
  HWY_ALIGN std::uint32_t numbers[4 * kParts];
  for (std::size_t i = 0; i < 4 * kParts; ++i) {
    numbers[i] = static_cast<std::uint32_t>(number(i % 4, i / 4));
  }
  return hn::Load(WordLanes(), numbers);
}

// Blocks of one trial side by side, a lane each.
class BlockLanes {
 public:
  BlockLanes(const Philox& philox, std::uint64_t trial)
      : philox_(philox),
        trial_(philox.of_trial(hn::Set(WordLanes(), static_cast<std::uint32_t>(trial)),
                               hn::Set(WordLanes(), static_cast<std::uint32_t>(trial >> 32)))),
        product_(Philox::first_products(numbers())),
        low_(Philox::low_products(0, numbers())) {}

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
  // Such that interleaving within 16 bytes puts values in order.
  static HWY_INLINE Words numbers() {
    return lane_numbers([](auto position, auto part) { return position * kParts + part; });
  }

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
    const Words parts = lane_numbers([](auto, auto part) { return part; });
    for (std::size_t i = 0; i < count; i += kParts) {
      const Words block = hn::Add(parts, hn::Set(d, static_cast<std::uint32_t>(i)));
      const Philox::OfBlock given =
          philox.of_block(Philox::first_products(block), Philox::low_products(0, block));
      hn::StoreU(given.word0, d, word0 + 4 * i);
      hn::StoreU(given.word1, d, word1 + 4 * i);
      hn::StoreU(given.word2, d, word2 + 4 * i);
    }
    // After the last comes the first.
    for (std::uint32_t* const word : {word0, word1, word2}) {
      for (std::size_t i = 0; i < 4 * (kParts - 1); ++i) word[4 * count + i] = word[i];
    }
  }

  // Of blocks from i on, one a part.
  HWY_INLINE Philox::OfBlock from(std::size_t i) const {
    const WordLanes d;
    return {hn::LoadU(d, word0 + 4 * i), hn::LoadU(d, word1 + 4 * i), hn::LoadU(d, word2 + 4 * i)};
  }

  static constexpr std::size_t kSize = 4 * (kMost + kParts - 1);
  std::size_t count;
  HWY_ALIGN std::uint32_t word0[kSize], word1[kSize], word2[kSize];
};

// Four trials side by side, a position each, and their blocks a part each: all blocks of some
// trials, then those of the next.
class TrialLanes {
 public:
  static constexpr std::size_t kTrials = 4;

  TrialLanes(const Philox& philox, const BlockTable& blocks, std::uint64_t first_trial)
      : philox_(philox),
        blocks_(blocks),
        trial_(first_trial),
        given_(given(lane_numbers([](auto position, auto) { return position; }))) {}

  HWY_INLINE Philox::Counter next() {
    if (HWY_UNLIKELY(block_ + kParts > blocks_.count)) turn();
    const std::size_t i = block_;
    block_ += kParts;
    return Philox::counter(blocks_.from(i), given_);
  }

 private:
  // To the next trials, or the last blocks of some and the first of the next.
  HWY_NOINLINE void turn() {
    for (; block_ >= blocks_.count; block_ -= blocks_.count) trial_ += kTrials;
    if (block_ + kParts <= blocks_.count) {
      given_ = given(lane_numbers([](auto position, auto) { return position; }));
    } else {
      given_ = given(lane_numbers([this](auto position, auto part) {
        return position + (block_ + part) / blocks_.count * kTrials;
      }));
    }
  }
  // What trials give, counted from trial_ on.
  HWY_INLINE Philox::OfTrial given(Words numbers) const {
    const WordLanes d;
    const Words first = hn::Set(d, static_cast<std::uint32_t>(trial_));
    const Words low = hn::Add(first, numbers);
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

  HWY_INLINE void operator()(const Floats (&lower)[2], const Floats (&upper)[2]) {
    const FloatLanes d;
    const std::size_t lanes = hn::Lanes(d);
    if (out_.size() >= 4 * lanes) {
      for (std::size_t i = 0; i < 2; ++i) {
        hn::StoreU(lower[i], d, out_.data() + 2 * i * lanes);
        hn::StoreU(upper[i], d, out_.data() + (2 * i + 1) * lanes);
      }
      out_ = out_.subspan(4 * lanes);
    } else {
      for (std::size_t i = 0; i < 2; ++i) put_last(lower[i], upper[i]);
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

// Writes the values of TrialLanes to out [trials, length].
class ToTrials {
 public:
  ToTrials(std::span<float> out, std::size_t length) : out_(out), length_(length) {}

  HWY_INLINE void operator()(const Floats (&lower)[2], const Floats (&upper)[2]) {
    const FloatLanes d;
    if (out_.size() >= TrialLanes::kTrials * length_ && column_ + 4 * kParts <= length_) {
      float* const to = out_.data() + column_;
      hn::StoreU(lower[0], d, to);
      hn::StoreU(upper[0], d, to + length_);
      hn::StoreU(lower[1], d, to + 2 * length_);
      hn::StoreU(upper[1], d, to + 3 * length_);
      advance(kParts);
    } else {
      put_some(lower, upper);
    }
  }

 private:
  // Of trials that are not there, or blocks that are not whole or of other trials.
  HWY_NOINLINE void put_some(const Floats (&lower)[2], const Floats (&upper)[2]) {
    const FloatLanes d;
    HWY_ALIGN float some[TrialLanes::kTrials][4 * kParts];
    for (std::size_t i = 0; i < 2; ++i) {
      hn::Store(lower[i], d, some[2 * i]);
      hn::Store(upper[i], d, some[2 * i + 1]);
    }
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t count = std::min<std::size_t>(4, length_ - column_);
      const std::size_t trials = std::min(TrialLanes::kTrials, out_.size() / length_);
      for (std::size_t i = 0; i < trials; ++i) {
        std::copy_n(some[i] + 4 * part, count, out_.data() + i * length_ + column_);
      }
      advance(1);
    }
  }
  HWY_INLINE void advance(std::size_t blocks) {
    column_ += 4 * blocks;
    if (column_ < length_) return;
    column_ = 0;
    out_ = out_.subspan(std::min(TrialLanes::kTrials * length_, out_.size()));
  }

  std::span<float> out_;
  std::size_t length_, column_ = 0;
};

// The words of some vectors of blocks: [vectors, 2, lanes, 2], words 0 and 2 of all and then 1
// and 3.
struct WordTile {
  // What they need stays in the first cache. A multiple of the six that are made at once.
  static constexpr std::size_t kVectors = 96;

  HWY_INLINE Words even(std::size_t vector) const {
    return hn::Load(WordLanes(), words + vector * Philox::kWords);
  }
  HWY_INLINE Words odd(std::size_t vector) const {
    return hn::Load(WordLanes(), words + vector * Philox::kWords + 2 * Philox::kLanes);
  }

  std::size_t vectors = 0;  // an even number
  HWY_ALIGN std::uint32_t words[kVectors * Philox::kWords];
};

// A transform of each vector by itself: operator()(const Words (&)[2], Floats (&)[2]).
template <class Transform>
struct VectorByVector {
  template <class Sink>
  HWY_INLINE void operator()(const WordTile& tile, Sink& sink) const {
    for (std::size_t v = 0; v < tile.vectors; v += 2) {
      Floats even[2], odd[2];
      for (std::size_t i = 0; i < 2; ++i) {
        Floats values[2];
        Transform()({tile.even(v + i), tile.odd(v + i)}, values);
        even[i] = values[0];
        odd[i] = values[1];
      }
      sink(even, odd);
    }
  }
};

// Puts the values of two vectors of blocks, that come as the words do, where `To` writes them.
template <class To>
class InOrder {
 public:
  explicit InOrder(const To& to) : to_(to) {}
  HWY_INLINE void operator()(const Floats (&even)[2], const Floats (&odd)[2]) {
    const FloatLanes d;
    Floats lower[2], upper[2];
    for (std::size_t i = 0; i < 2; ++i) {
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
    philox.write(source, tile.vectors, tile.words);
    transform(tile, sink);
  }
}

// Fills out [trials, length]. `transform` makes values of words: operator()(const WordTile&, Sink&)
// calls sink({even, even}, {odd, odd}) with those of the words of each two vectors of the tile.
template <class Transform>
void draw_in_vectors(const Draw& draw, std::span<float> out, const Transform& transform) {
  if (out.empty()) return;
  constexpr std::size_t kTrials = TrialLanes::kTrials;
  const std::size_t blocks = draw.blocks(), trials = out.size() / draw.length;
  const Philox philox(draw.seed, draw.stream);
  const auto vectors_of = [](std::size_t count) {
    constexpr std::size_t kOfTwo = 2 * Philox::kLanes;
    return 2 * ((count + kOfTwo - 1) / kOfTwo);
  };
  // Trials side by side as long as they fill all lanes, and to the end where that takes less.
  std::size_t alone = trials;
  if (blocks <= BlockTable::kMost) {
    alone = trials % kTrials;
    if (alone * vectors_of(blocks) > vectors_of(kTrials * blocks)) alone = 0;
  }
  const std::size_t beside = trials - alone;
  if (beside > 0) {
    const BlockTable table(philox, blocks);
    const std::size_t groups = (beside + kTrials - 1) / kTrials;
    draw_vectors(philox, TrialLanes(philox, table, draw.trial),
                 vectors_of(groups * kTrials * blocks), transform,
                 ToTrials(out.first(beside * draw.length), draw.length));
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
