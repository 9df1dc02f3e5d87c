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

#include "attnlab/core/philox.h"
#include "attnlab/core/random.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA

// The words of vectors of counters (block, lower and upper half of trial, stream).
//
// A counter has a 64-bit lane, of which a product of 32 bits reads the lower half only: its own
// halves are words of the next round as they stand. In the end words 0 and 2 share the lane, and
// words 1 and 3.
//
// Neither of the first round's products reads what the other does, so that after two rounds each
// word is one that the block alone gives, or the trial, or the exclusive or of two such. A lane's
// block or its trial thus has these rounds made of it once, for all it meets.
template <class D32>
class PhiloxLanes {
 public:
  using D64 = hn::Repartition<std::uint64_t, D32>;
  using Wide = hn::Vec<D64>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D64());
  static constexpr std::size_t kWords = 4 * kLanes;  // of a vector

  // The lower half of each lane counts, in all of these.
  struct OfBlock {
    Wide word0, word1, word2;
  };
  struct OfTrial {
    Wide word0, word2, word3;
  };
  struct Counter {
    Wide word0, word1, word2, word3;
  };

  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  PhiloxLanes(std::uint64_t seed, Stream stream) : stream_(static_cast<std::uint32_t>(stream)) {
    PhiloxKey key = philox_key(seed);
    for (auto& round : keys_) {
      for (std::size_t word = 0; word < 2; ++word) {
        // In both halves: the last round writes words of a lane to its upper one.
        const Wide both = hn::BitCast(D64(), hn::Set(D32(), key[word]));
        hn::Store(both, D64(), round[word]);
      }
      key = next_philox_key(key);
    }
  }

  // What blocks give of which first_product() is told.
  HWY_INLINE OfBlock of_block(Wide product0) const {
    const Wide word2 = hn::Xor3(hn::ShiftRight<32>(product0), hn::Set(D64(), stream_), key(0, 1));
    const Wide product1 = times(1, word2);
    return {hn::ShiftRight<32>(product1), hn::Xor(product1, key(2, 0)), product0};
  }
  static HWY_INLINE Wide first_product(Wide block) { return times(0, block); }

  // What trials of 64 bits give.
  HWY_INLINE OfTrial of_trial(Wide trial) const {
    const Wide product1 = times(1, hn::ShiftRight<32>(trial));
    const Wide word0 = hn::Xor3(hn::ShiftRight<32>(product1), trial, key(0, 0));
    const Wide product0 = times(0, word0);
    return {hn::Xor(product1, key(1, 0)), hn::Xor(hn::ShiftRight<32>(product0), key(1, 1)),
            hn::Xor(product0, key(2, 1))};
  }

  // After two rounds; the keys of the third are in it.
  static HWY_INLINE Counter counter(const OfBlock& block, const OfTrial& trial) {
    return {hn::Xor(block.word0, trial.word0), block.word1, hn::Xor(block.word2, trial.word2),
            trial.word3};
  }

  // Writes words [vectors, 2, lanes, 2], words 0 and 2 of all lanes and then 1 and 3.
  // Source::next() is the counter() of the next vector.
  //
  // Three vectors at once keep the multipliers busy, since each round waits for the one before it,
  // and are all that 16 registers hold.
  template <class Source>
  HWY_NOINLINE void write(Source& source, std::size_t vectors,
                          std::uint32_t* HWY_RESTRICT words) const {
    for (; vectors >= 3; vectors -= 3, words += 3 * kWords) run<3>(source, words);
    for (; vectors > 0; --vectors, words += kWords) run<1>(source, words);
  }

 private:
  static constexpr std::size_t kRounds = 10;

  HWY_INLINE Wide key(std::size_t round, std::size_t word) const {
    return hn::Load(D64(), keys_[round][word]);
  }
  static HWY_INLINE Wide times(std::size_t word, Wide factor) {
    return hn::MulEven(hn::BitCast(D32(), factor), hn::Set(D32(), kPhiloxMultiplier[word]));
  }

  template <std::size_t count, class Source>
  HWY_INLINE void run(Source& source, std::uint32_t* HWY_RESTRICT words) const {
    Counter c[count];
    Wide product0[count], product1[count];
    for (Counter& counter : c) counter = source.next();
    products(c, product0, product1);
    finish_round(product0, product1, c);  // the third, whose keys are in the words
    HWY_UNROLL(kRounds - 4)
    for (std::size_t r = 3; r < kRounds - 1; ++r) {
      products(c, product0, product1);
      for (std::size_t i = 0; i < count; ++i) {
        c[i].word1 = hn::Xor(c[i].word1, key(r, 0));
        c[i].word3 = hn::Xor(c[i].word3, key(r, 1));
      }
      finish_round(product0, product1, c);
    }
    products(c, product0, product1);
    for (std::size_t i = 0; i < count; ++i, words += kWords) {
      finish_last(c[i], product0[i], product1[i], words);
    }
  }

  template <std::size_t count>
  static HWY_INLINE void products(const Counter (&c)[count], Wide (&product0)[count],
                                  Wide (&product1)[count]) {
    for (std::size_t i = 0; i < count; ++i) {
      product0[i] = times(0, c[i].word0);
      product1[i] = times(1, c[i].word2);
    }
  }

  // Words 1 and 3 have the keys in them.
  template <std::size_t count>
  static HWY_INLINE void finish_round(const Wide (&product0)[count], const Wide (&product1)[count],
                                      Counter (&c)[count]) {
    for (std::size_t i = 0; i < count; ++i) {
      c[i] = {hn::Xor(hn::ShiftRight<32>(product1[i]), c[i].word1), product1[i],
              hn::Xor(hn::ShiftRight<32>(product0[i]), c[i].word3), product0[i]};
    }
  }
  HWY_INLINE void finish_last(const Counter& c, Wide product0, Wide product1,
                              std::uint32_t* HWY_RESTRICT words) const {
    const Wide word0 = hn::Xor3(hn::ShiftRight<32>(product1), c.word1, key(kRounds - 1, 0));
    // In the upper halves, where the product has its own.
    const Wide word2 = hn::Xor3(product0, hn::ShiftLeft<32>(c.word3), key(kRounds - 1, 1));
    store_halves(word2, word0, words);
    store_halves(hn::ShiftLeft<32>(product0), product1, words + 2 * kLanes);
  }
  static HWY_INLINE void store_halves(Wide upper, Wide lower, std::uint32_t* HWY_RESTRICT to) {
    const D32 d;
    hn::Store(hn::OddEven(hn::BitCast(d, upper), hn::BitCast(d, lower)), d, to);
  }

  std::uint64_t stream_;
  HWY_ALIGN std::uint64_t keys_[kRounds][2][kLanes];
};

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
