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
// A word has a vector of its own, half as many as there are when products lie in the way. Products
// of 32 bits read every other lane, so that those of a vector come in two, from which a round takes
// the upper halves and the lower ones. What joins halves by one instruction also exchanges lanes 1
// and 2 of each four; words that meet in a round are kept in one order by joining the upper halves
// so, and multiplying once more for the lower ones, of which nothing else is wanted.
//
// Neither of the first round's products reads what the other does, so that after two rounds each
// word is one that the block alone gives, or the trial, or the exclusive or of two such. A lane's
// block or its trial thus has these rounds made of it once, for all it meets.
template <class D32>
class PhiloxLanes {
 public:
  using D64 = hn::Repartition<std::uint64_t, D32>;
  using Word = hn::Vec<D32>;
  using Wide = hn::Vec<D64>;
  static constexpr std::size_t kLanes = hn::MaxLanes(D64());
  static constexpr std::size_t kWords = 4 * kLanes;  // of a vector of blocks, a 64-bit lane each

  struct OfBlock {
    Word word0, word1, word2;
  };
  struct OfTrial {
    Word word0, word2, word3;
  };
  struct Counter {
    Word word0, word1, word2, word3;
  };
  // Of all lanes: those of even numbers and those of odd ones.
  struct Products {
    Wide even, odd;
  };

  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init)
  PhiloxLanes(std::uint64_t seed, Stream stream) {
    PhiloxKey key = philox_key(seed);
    for (auto& round : keys_) {
      for (std::size_t word = 0; word < 2; ++word) {
        hn::Store(hn::Set(D32(), key[word]), D32(), round[word]);
      }
      key = next_philox_key(key);
    }
    const auto last = static_cast<std::uint32_t>(stream);
    hn::Store(hn::Xor(hn::Set(D32(), last), this->key(0, 1)), D32(), last_word_);
  }

  // What blocks give of whose first_products() is told, and the lower halves of these.
  HWY_INLINE OfBlock of_block(const Products& product0, Word low) const {
    const Word word2 = hn::Xor(high(product0), hn::Load(D32(), last_word_));
    return {high(products(1, word2)), hn::Xor(low_products(1, word2), key(2, 0)), low};
  }
  static HWY_INLINE Products first_products(Word block) { return products(0, block); }
  static HWY_INLINE Word low_products(std::size_t word, Word factor) {
    return hn::Mul(factor, hn::Set(D32(), kPhiloxMultiplier[word]));
  }

  // What trials give, of the lower and the upper halves of their numbers.
  HWY_INLINE OfTrial of_trial(Word low, Word upper) const {
    const Word word0 = hn::Xor3(high(products(1, upper)), low, key(0, 0));
    return {hn::Xor(low_products(1, upper), key(1, 0)),
            hn::Xor(high(products(0, word0)), key(1, 1)),
            hn::Xor(low_products(0, word0), key(2, 1))};
  }

  // After two rounds; the keys of the third are in it.
  static HWY_INLINE Counter counter(const OfBlock& block, const OfTrial& trial) {
    return {hn::Xor(block.word0, trial.word0), block.word1, hn::Xor(block.word2, trial.word2),
            trial.word3};
  }

  // Writes words [vectors, 2, lanes, 2], words 0 and 2 of all lanes and then 1 and 3. An even
  // number of vectors: Source::next() is the counter() of the next two, in each 16 bytes two lanes
  // of the first and then two of the second.
  //
  // Three such counters at once keep the processor busy, since each round waits for the one before
  // it. Two, all that 16 registers hold, draw normals slower by 5%, one by 17%.
  template <class Source>
  HWY_NOINLINE void write(Source& source, std::size_t vectors,
                          std::uint32_t* HWY_RESTRICT words) const {
    for (; vectors >= 6; vectors -= 6, words += 6 * kWords) run<3>(source, words);
    for (; vectors > 0; vectors -= 2, words += 2 * kWords) run<1>(source, words);
  }

 private:
  static constexpr std::size_t kRounds = 10;
  enum class Lanes { kept, exchanged };

  HWY_INLINE Word key(std::size_t round, std::size_t word) const {
    return hn::Load(D32(), keys_[round][word]);
  }
  static HWY_INLINE Products products(std::size_t word, Word factor) {
    const Word multiplier = hn::Set(D32(), kPhiloxMultiplier[word]);
    const Word odd = hn::BitCast(D32(), hn::ShiftRight<32>(hn::BitCast(D64(), factor)));
    return {hn::MulEven(factor, multiplier), hn::MulEven(odd, multiplier)};
  }

  // Upper halves of products, in order.
  static HWY_INLINE Word high(const Products& product) {
    return hn::OddEven(hn::BitCast(D32(), product.odd),
                       hn::BitCast(D32(), hn::ShiftRight<32>(product.even)));
  }
  // The upper halves of products, or the lower ones, lanes 1 and 2 of each four exchanged.
  template <bool upper>
  static HWY_INLINE Word joined(const Products& product) {
    const Word a = hn::BitCast(D32(), product.even), b = hn::BitCast(D32(), product.odd);
    [[maybe_unused]] constexpr int kOrder = upper ? 0xDD : 0x88;
#if HWY_TARGET == HWY_AVX2
    return Word{_mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a.raw), _mm256_castsi256_ps(b.raw), kOrder))};
#elif HWY_TARGET <= HWY_AVX3
    return Word{_mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(a.raw), _mm512_castsi512_ps(b.raw), kOrder))};
#else
    static_assert(hn::MaxLanes(D32()) == 4);
    return upper ? hn::ConcatOdd(D32(), b, a) : hn::ConcatEven(D32(), b, a);
#endif
  }

  // Words 1 and 3 have the keys in them, and the order that words 0 and 2 will have.
  template <Lanes of_high, Lanes of_low>
  static HWY_INLINE void round(Counter& c) {
    const Products product0 = products(0, c.word0), product1 = products(1, c.word2);
    const Word high0 = of_high == Lanes::kept ? high(product0) : joined<true>(product0);
    const Word high1 = of_high == Lanes::kept ? high(product1) : joined<true>(product1);
    const Word low0 = of_low == Lanes::kept ? low_products(0, c.word0) : joined<false>(product0);
    const Word low1 = of_low == Lanes::kept ? low_products(1, c.word2) : joined<false>(product1);
    c = {hn::Xor(high1, c.word1), low1, hn::Xor(high0, c.word3), low0};
  }
  HWY_INLINE void add_keys(std::size_t r, Counter& c) const {
    c.word1 = hn::Xor(c.word1, key(r, 0));
    c.word3 = hn::Xor(c.word3, key(r, 1));
  }

  template <std::size_t count, class Source>
  HWY_INLINE void run(Source& source, std::uint32_t* HWY_RESTRICT words) const {
    Counter c[count];
    for (Counter& counter : c) counter = source.next();
    // The third round, whose keys are in the words.
    for (Counter& counter : c) round<Lanes::kept, Lanes::exchanged>(counter);
    HWY_UNROLL(kRounds - 5)
    for (std::size_t r = 3; r < kRounds - 2; ++r) {
      for (Counter& counter : c) {
        add_keys(r, counter);
        round<Lanes::exchanged, Lanes::kept>(counter);
      }
    }
    for (Counter& counter : c) {
      add_keys(kRounds - 2, counter);
      round<Lanes::exchanged, Lanes::exchanged>(counter);
    }
    for (Counter& counter : c) {
      add_keys(kRounds - 1, counter);
      round<Lanes::kept, Lanes::kept>(counter);
      store(counter, words);
      words += 2 * kWords;
    }
  }

  static HWY_INLINE void store(const Counter& c, std::uint32_t* HWY_RESTRICT to) {
    const D32 d;
    hn::Store(hn::InterleaveLower(d, c.word0, c.word2), d, to);
    hn::Store(hn::InterleaveLower(d, c.word1, c.word3), d, to + 2 * kLanes);
    hn::Store(hn::InterleaveUpper(d, c.word0, c.word2), d, to + kWords);
    hn::Store(hn::InterleaveUpper(d, c.word1, c.word3), d, to + kWords + 2 * kLanes);
  }

  HWY_ALIGN std::uint32_t keys_[kRounds][2][2 * kLanes];
  HWY_ALIGN std::uint32_t last_word_[2 * kLanes];
};

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
