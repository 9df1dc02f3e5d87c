// exp in float64 vectors, the same bits on every target. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_
#undef ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_
#else
#define ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <array>

#include "attnlab/attention/exponential_constants.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How far down: to where exponentials are subnormal, and 0 beyond, or only to where they are
// normal.
enum class Depth { all, normal };

// y = e^x for x in [-1000, 0], or [kLowestNormal, 0], within 1 unit in the last place. Nothing but
// IEEE additions and multiplications, so that the bits are the same whether a target has fused
// multiply-adds or not: x is n whole powers of two and a rest r of at most half of one, e^r = 1 +
// (r + r^2 q(r)) with the even and the odd powers of q apart, and n goes into the exponent.
//
// Several vectors at a time: every step is done for all before the next, since each waits for the
// one before it.
template <Depth depth, std::size_t count, class D, class V = hn::Vec<D>>
HWY_INLINE void exponential(D d, const V (&x)[count], V (&y)[count]) {
  namespace constants = exponential_constants;
  const hn::RebindToSigned<D> integers;
  const V round = hn::Set(d, constants::kRound);
  // The whole number also stands in the low bits of what it is rounded with.
  V shifted[count], n[count], r[count], r2[count], odd[count], even[count];
  for (std::size_t i = 0; i < count; ++i) {
    shifted[i] = hn::Add(hn::Mul(x[i], hn::Set(d, constants::kLog2E)), round);
    n[i] = hn::Sub(shifted[i], round);
  }
  for (std::size_t i = 0; i < count; ++i) {
    // The first product is exact.
    const V high = hn::Sub(x[i], hn::Mul(n[i], hn::Set(d, constants::kLn2High)));
    r[i] = hn::Sub(high, hn::Mul(n[i], hn::Set(d, constants::kLn2Low)));
    r2[i] = hn::Mul(r[i], r[i]);
  }
  constexpr std::array q = constants::kQuotient;
  for (std::size_t i = 0; i < count; ++i) {
    odd[i] = hn::Add(hn::Mul(r2[i], hn::Set(d, q[0])), hn::Set(d, q[2]));
    even[i] = hn::Add(hn::Mul(r2[i], hn::Set(d, q[1])), hn::Set(d, q[3]));
  }
  for (std::size_t k = 4; k < q.size(); k += 2) {
    for (std::size_t i = 0; i < count; ++i) {
      odd[i] = hn::Add(hn::Mul(odd[i], r2[i]), hn::Set(d, q[k]));
      even[i] = hn::Add(hn::Mul(even[i], r2[i]), hn::Set(d, q[k + 1]));
    }
  }
  const auto times_power = [&](V value, V whole) {
    const auto exponent = hn::ShiftLeft<52>(hn::BitCast(integers, whole));
    return hn::BitCast(d, hn::Add(hn::BitCast(integers, value), exponent));
  };
  const V one = hn::Set(d, 1.0);
  for (std::size_t i = 0; i < count; ++i) {
    const V quotient = hn::Add(hn::Mul(odd[i], r[i]), even[i]);
    const V power = hn::Add(hn::Add(hn::Mul(r2[i], quotient), r[i]), one);
    if constexpr (depth == Depth::normal) {
      y[i] = times_power(power, shifted[i]);
    } else {
      // In two steps, of which only the second can round.
      const V first = hn::Max(n[i], hn::Set(d, -500.0));
      const V second = hn::Add(hn::Sub(n[i], first), round);
      y[i] = hn::Mul(times_power(power, hn::Add(first, round)), times_power(one, second));
    }
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
