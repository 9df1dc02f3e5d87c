// exp in float64 vectors. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_
#undef ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_
#else
#define ATTNLAB_ATTENTION_EXPONENTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <array>

#include "attnlab/attention/exponential.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How far down: to where exponentials are subnormal, and 0 beyond, or only to where they are
// normal.
enum class Depth { all, normal };

#if HWY_NATIVE_FMA

// y = e^x for x in [-1000, 0], or [kLowestNormal, 0]: exponential_of in vectors, with its bits.
//
// Several vectors at a time: every step is done for all before the next, since each waits for the
// one before it.
template <Depth depth, std::size_t count, class D, class V = hn::Vec<D>>
HWY_INLINE void exponential(D d, const V (&x)[count], V (&y)[count]) {
  namespace constants = exponential_constants;
  const hn::RebindToSigned<D> integers;
  const V round = hn::Set(d, constants::kRound);
  V shifted[count], n[count], r[count], r2[count], odd[count], even[count];
  for (std::size_t i = 0; i < count; ++i) {
    shifted[i] = hn::MulAdd(x[i], hn::Set(d, constants::kLog2E), round);
    n[i] = hn::Sub(shifted[i], round);
  }
  for (std::size_t i = 0; i < count; ++i) {
    r[i] = hn::NegMulAdd(n[i], hn::Set(d, constants::kLn2High), x[i]);
    r[i] = hn::NegMulAdd(n[i], hn::Set(d, constants::kLn2Low), r[i]);
    r2[i] = hn::Mul(r[i], r[i]);
  }
  constexpr std::array q = constants::kQuotient;
  for (std::size_t i = 0; i < count; ++i) {
    odd[i] = hn::MulAdd(r2[i], hn::Set(d, q[0]), hn::Set(d, q[2]));
    even[i] = hn::MulAdd(r2[i], hn::Set(d, q[1]), hn::Set(d, q[3]));
  }
  for (std::size_t k = 4; k < q.size(); k += 2) {
    for (std::size_t i = 0; i < count; ++i) {
      odd[i] = hn::MulAdd(odd[i], r2[i], hn::Set(d, q[k]));
      even[i] = hn::MulAdd(even[i], r2[i], hn::Set(d, q[k + 1]));
    }
  }
  const auto times_power = [&](V value, V whole) {
    const auto exponent = hn::ShiftLeft<52>(hn::BitCast(integers, whole));
    return hn::BitCast(d, hn::Add(hn::BitCast(integers, value), exponent));
  };
  const V one = hn::Set(d, 1.0);
  for (std::size_t i = 0; i < count; ++i) {
    const V quotient = hn::MulAdd(odd[i], r[i], even[i]);
    const V power = hn::Add(hn::MulAdd(r2[i], quotient, r[i]), one);
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

#else

template <Depth depth, std::size_t count, class D, class V = hn::Vec<D>>
HWY_INLINE void exponential(D d, const V (&x)[count], V (&y)[count]) {
  HWY_ALIGN double lanes[hn::MaxLanes(d)];
  for (std::size_t i = 0; i < count; ++i) {
    hn::Store(x[i], d, lanes);
    for (double& lane : lanes) lane = exponential_of(lane);
    y[i] = hn::Load(d, lanes);
  }
}

#endif  // HWY_NATIVE_FMA

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
