// The transform from bits to normals in vectors, with the bits of normals_of. Included once for
// every target, see hwy/foreach_target.h.
#if defined(ATTNLAB_CORE_NORMAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_CORE_NORMAL_INL_H_
#undef ATTNLAB_CORE_NORMAL_INL_H_
#else
#define ATTNLAB_CORE_NORMAL_INL_H_
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "attnlab/core/normal_constants.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA

// -q(-t/2) / 2 of a polynomial q. Every coefficient is multiplied by a power of two, so that each
// step of the one polynomial is such a multiple of the other's, to the last bit.
template <std::size_t size>
constexpr std::array<float, size> halved_and_reflected(std::array<float, size> q) {
  float power = -0.5f;
  for (std::size_t i = size; i-- > 0; power *= -0.5f) q[i] *= power;
  return q;
}

// Vectors by twos: every step is done for both before the next, since each waits for the one before
// it.
template <class D>
using Two = hn::Vec<D>[2];

// One more coefficient of Horner's scheme, of sums that are those of the coefficients before it.
template <class D>
HWY_INLINE void next_power(D d, const Two<D>& x, float coefficient, Two<D>& sum) {
  for (std::size_t p = 0; p < 2; ++p) sum[p] = hn::MulAdd(sum[p], x[p], hn::Set(d, coefficient));
}

// u = (bits + 1/2) / 2^32 as 2^e (1 + t), in whose terms the steps of log_uniform_of are told.
template <class D>
struct Uniform {
  Two<D> t;         // -2 t
  Two<D> exponent;  // 2^23 e
};

template <class D, class W>
HWY_INLINE void split_uniform(D d, const W (&bits)[2], Uniform<D>& u) {
  using V = hn::Vec<D>;
  const hn::RebindToSigned<D> integers;
  V offset[2];
  for (std::size_t p = 0; p < 2; ++p) {
    const V centred = hn::ConvertTo(d, hn::BitCast(integers, bits[p]));
    offset[p] = hn::MulAdd(centred, hn::Set(d, 0x1p-32f), hn::Set(d, 0x1p-33f));
  }
  for (std::size_t p = 0; p < 2; ++p) {
    const V upper = hn::BitCast(d, bits[p]);  // where its sign is set
    const V whole =
        hn::IfNegativeThenElse(offset[p], hn::Add(offset[p], hn::Set(d, 1.0f)), offset[p]);
    // 2^23 e
    const auto e =
        hn::And(hn::Sub(hn::BitCast(integers, whole), hn::Set(integers, normal::kSqrtHalf)),
                hn::Set(integers, -0x800000));
    // t is offset 2^-e - 1, and in the upper half offset 2^-e + (2^-e - 1). All times -2, without a
    // rounding more or less.
    const V power = hn::BitCast(d, hn::Sub(hn::Set(integers, -0x40000000), e));  // -2 2^-e
    const V shift = hn::IfNegativeThenElse(upper, power, hn::Zero(d));
    u.t[p] = hn::MulAdd(offset[p], power, hn::Add(shift, hn::Set(d, 2.0f)));
    u.exponent[p] = hn::ConvertTo(d, e);
  }
}

inline constexpr std::array kHalvedQuotient = halved_and_reflected(normal::kLog1pQuotient);

// -2 ln u, given kHalvedQuotient at u.t.
template <class D>
HWY_INLINE void minus_two_log(D d, const Uniform<D>& u, const Two<D>& quotient, Two<D>& result) {
  for (std::size_t p = 0; p < 2; ++p) {
    const auto log_m = hn::MulAdd(hn::Mul(u.t[p], u.t[p]), quotient[p], u.t[p]);
    result[p] = hn::MulAdd(u.exponent[p], hn::Set(d, normal::kLn2 * -0x1p-22f), log_m);
  }
}

// -2 ln u of u = (bits + 1/2) / 2^32: -2 log_uniform_of(bits).
template <class D, class W>
HWY_INLINE void minus_two_log_uniform(D d, const W (&bits)[2], Two<D>& result) {
  Uniform<D> u;
  split_uniform(d, bits, u);
  Two<D> q = {hn::Set(d, kHalvedQuotient[0]), hn::Set(d, kHalvedQuotient[0])};
  for (std::size_t i = 1; i < kHalvedQuotient.size(); ++i)
    next_power(d, u.t, kHalvedQuotient[i], q);
  minus_two_log(d, u, q, result);
}

// The normals of words 0 or 2 of blocks, as split_uniform leaves them, and of the words after them,
// which tell the turns: two vectors of each.
template <class D, class W, class V = hn::Vec<D>>
HWY_INLINE void normals_of_split(D d, const Uniform<D>& u, const W (&turns)[2], V (&cosines)[2],
                                 V (&sines)[2]) {
  const hn::RebindToSigned<D> integers;
  const hn::RebindToUnsigned<D> words;
  V x[2], z[2], q[2], s[2], c[2];
  for (std::size_t p = 0; p < 2; ++p) {
    // What is left of the nearest quarter turn, of 2^30 steps: the lower 30 bits with their sign.
    const auto rest = hn::BitCast(integers, hn::ShiftLeft<2>(turns[p]));
    x[p] = hn::MulAdd(hn::ConvertTo(d, rest), hn::Set(d, 0x1p-32f), hn::Set(d, 0x1p-31f));
    q[p] = hn::Set(d, kHalvedQuotient[0]);
    s[p] = hn::Set(d, normal::kSineRest[0]);
    c[p] = hn::Set(d, normal::kCosine[0]);
  }
  for (std::size_t p = 0; p < 2; ++p) z[p] = hn::Mul(x[p], x[p]);
  // The polynomials take turns, since each step waits for the one before it.
  constexpr std::size_t kAhead = kHalvedQuotient.size() - normal::kCosine.size();
  for (std::size_t i = 1; i < kHalvedQuotient.size(); ++i) {
    next_power(d, u.t, kHalvedQuotient[i], q);
    if (i <= kAhead) continue;
    if (i - kAhead < normal::kSineRest.size()) next_power(d, z, normal::kSineRest[i - kAhead], s);
    next_power(d, z, normal::kCosine[i - kAhead], c);
  }
  V radius[2];
  minus_two_log(d, u, q, radius);
  for (std::size_t p = 0; p < 2; ++p) radius[p] = hn::Sqrt(radius[p]);
  for (std::size_t p = 0; p < 2; ++p) {
    // The number of the nearest quarter turn is in the upper two bits. Odd ones exchange sine and
    // cosine and turn the sign of what becomes the cosine, and the uppermost bit turns both.
    const auto quarter = hn::Add(turns[p], hn::Set(words, 0x20000000u));
    const V odd = hn::BitCast(d, hn::Add(quarter, quarter));
    const V half_pi = hn::Set(d, normal::kHalfPi), rest = hn::Mul(x[p], s[p]);
    const V sine = hn::MulAdd(x[p], half_pi, rest);
    const V minus_sine = hn::NegMulSub(x[p], half_pi, rest);
    const V turned = hn::Xor(radius[p], hn::And(hn::BitCast(d, quarter), hn::SignBit(d)));
    cosines[p] = hn::Mul(turned, hn::IfNegativeThenElse(odd, minus_sine, c[p]));
    sines[p] = hn::Mul(turned, hn::IfNegativeThenElse(odd, c[p], sine));
  }
}

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
