// Philox4x32-10 in vectors. Included once for every target, see hwy/foreach_target.h.
#if defined(ATTNLAB_CORE_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_CORE_PHILOX_INL_H_
#undef ATTNLAB_CORE_PHILOX_INL_H_
#else
#define ATTNLAB_CORE_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "attnlab/core/draw.h"
#include "attnlab/core/philox.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA

// The blocks of a draw in order, those of a trial and then of the next, a vector of them at a time.
//
// A block has a 64-bit lane, of which a product of 32 bits reads the lower half only: its own
// halves are words of the next round as they stand. Two such vectors, an even and an odd one, make
// one vector of each word in the end. Lanes are numbered so that shuffles within 16 bytes put these
// in order: position p of 16-byte part c has block p * parts + c of the vector.
template <class D32>
class PhiloxBlocks {
 public:
  using Word = hn::Vec<D32>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D32());
  // Vectors at once: what their words need stays in the first cache.
  static constexpr std::size_t kVectors = 30;

  // The words stay as they are until next().
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  explicit PhiloxBlocks(const Draw& draw) : stream_(draw.stream), blocks_(draw.blocks()) {
    HWY_ALIGN std::uint64_t block[kLanes], trial[kLanes];
    const std::size_t lanes = hn::Lanes(D32()), parts = lanes / 4;
    std::uint64_t next_block = 0, next_trial = draw.trial;
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::size_t position = i / parts, part = i % parts;
      const std::size_t lane = position % 2 * (lanes / 2) + part * 2 + position / 2;
      block[lane] = next_block;
      trial[lane] = next_trial;
      if (++next_block == blocks_) {
        next_block = 0;
        ++next_trial;
      }
    }
    const D64 d;
    even_ = {hn::Load(d, block), hn::Load(d, trial)};
    odd_ = {hn::Load(d, block + lanes / 2), hn::Load(d, trial + lanes / 2)};
    PhiloxKey key = philox_key(draw.seed);
    for (auto& round : keys_) {
      for (std::size_t word = 0; word < 2; ++word) hn::Store(hn::Set(d, key[word]), d, round[word]);
      key = next_philox_key(key);
    }
  }

  // Goes on to the next `vectors` vectors of blocks, at most kVectors of them.
  void next(std::size_t vectors) {
    next(vectors, even_, even_words_);
    next(vectors, odd_, odd_words_);
  }
  // Word `w` of vector `v` of them.
  HWY_INLINE Word word(std::size_t v, std::size_t w) const {
    const D32 d;
    const D64 d64;
    const std::size_t place = (4 * v + w) * hn::Lanes(d64);
    const auto odd = hn::ShiftLeft<32>(hn::Load(d64, odd_words_ + place));
    return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::Load(d64, even_words_ + place)));
  }

 private:
  using D64 = hn::Repartition<std::uint64_t, D32>;
  using Wide = hn::Vec<D64>;

  struct Place {
    Wide block, trial;
  };
  // The lower half of each lane counts.
  struct Counter {
    Wide word0, word1, word2, word3;
  };

  HWY_NOINLINE void next(std::size_t vectors, Place& place,
                         std::uint64_t* HWY_RESTRICT words) const {
    const std::size_t lanes = hn::Lanes(D64());
    Place at = place;
    for (; vectors >= 3; vectors -= 3, words += 12 * lanes) run<3>(at, words);
    for (; vectors > 0; --vectors, words += 4 * lanes) run<1>(at, words);
    place = at;
  }

  // Three vectors at once keep the multipliers busy, since each round waits for the one before it,
  // and are all that 16 registers hold.
  template <std::size_t count>
  HWY_INLINE void run(Place& place, std::uint64_t* HWY_RESTRICT words) const {
    const D64 d;
    Counter c[count];
    for (Counter& counter : c) {
      counter = {place.block, place.trial, hn::ShiftRight<32>(place.trial),
                 hn::Set(d, static_cast<std::uint64_t>(stream_))};
      advance(place);
    }
    HWY_UNROLL(1)
    for (const auto& key : keys_) {
      for (Counter& counter : c) round(counter, hn::Load(d, key[0]), hn::Load(d, key[1]));
    }
    for (const Counter& counter : c) {
      hn::Store(counter.word0, d, words);
      hn::Store(counter.word1, d, words + hn::Lanes(d));
      hn::Store(counter.word2, d, words + 2 * hn::Lanes(d));
      hn::Store(counter.word3, d, words + 3 * hn::Lanes(d));
      words += 4 * hn::Lanes(d);
    }
  }

  static HWY_INLINE Wide times(std::uint32_t multiplier, Wide word) {
    return hn::MulEven(hn::BitCast(D32(), word), hn::Set(D32(), multiplier));
  }

  static HWY_INLINE void round(Counter& c, Wide key0, Wide key1) {
    const Wide product0 = times(kPhiloxMultiplier[0], c.word0);
    const Wide product1 = times(kPhiloxMultiplier[1], c.word2);
    c = {hn::Xor(hn::ShiftRight<32>(product1), hn::Xor(c.word1, key0)), product1,
         hn::Xor(hn::ShiftRight<32>(product0), hn::Xor(c.word3, key1)), product0};
  }

  HWY_INLINE void advance(Place& place) const {
    const D64 d;
    const hn::RebindToSigned<D64> signed_lanes;
    const std::size_t lanes = hn::Lanes(D32());
    place.block = hn::Add(place.block, hn::Set(d, lanes % blocks_));
    place.trial = hn::Add(place.trial, hn::Set(d, lanes / blocks_));
    const auto last = hn::Set(signed_lanes, static_cast<std::int64_t>(blocks_ - 1));
    const Wide over = hn::BitCast(
        d, hn::VecFromMask(signed_lanes, hn::Gt(hn::BitCast(signed_lanes, place.block), last)));
    place.block = hn::Sub(place.block, hn::And(over, hn::Set(d, blocks_)));
    place.trial = hn::Sub(place.trial, over);  // which is -1 there
  }

  Stream stream_;
  std::uint64_t blocks_;  // a trial
  Place even_, odd_;
  HWY_ALIGN std::uint64_t keys_[10][2][kLanes / 2];
  HWY_ALIGN std::uint64_t even_words_[kVectors * 2 * kLanes], odd_words_[kVectors * 2 * kLanes];
};

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
