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

// Where exponentials that are subnormal come from: exact to float64's last subnormal bit, or 0 for
// them.
enum class Subnormals { kept, zero };

// e^x for x in [-1000, 0], within 1 unit in the last place. Nothing but IEEE additions and
// multiplications, so that the bits are the same whether a target has fused multiply-adds or not:
// x is n whole powers of two and a rest r of at most half of one, e^r = 1 + (r + r^2 q(r)) with the
// even and the odd powers of q apart, and n goes into the exponent.
template <Subnormals subnormals, class D, class V = hn::Vec<D>>
HWY_INLINE V exponential(D d, V x) {
  const hn::RebindToSigned<D> integers;
  const V round = hn::Set(d, exponential_constants::kRound);
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, exponential_constants::kLog2E)), round);
  const V n = hn::Sub(shifted, round);
  // n times the first part of ln 2 is exact.
  const V r = hn::Sub(hn::Sub(x, hn::Mul(n, hn::Set(d, exponential_constants::kLn2High))),
                      hn::Mul(n, hn::Set(d, exponential_constants::kLn2Low)));
  const V r2 = hn::Mul(r, r);
  constexpr std::array q = exponential_constants::kQuotient;
  V odd = hn::Set(d, q[0]), even = hn::Set(d, q[1]);
  for (std::size_t i = 2; i < q.size(); i += 2) {
    odd = hn::Add(hn::Mul(odd, r2), hn::Set(d, q[i]));
    even = hn::Add(hn::Mul(even, r2), hn::Set(d, q[i + 1]));
  }
  const V quotient = hn::Add(hn::Mul(odd, r), even);
  const V power = hn::Add(hn::Add(hn::Mul(r2, quotient), r), hn::Set(d, 1.0));
  // The whole number stands in the low bits of what it is rounded with.
  const auto exponent = [&](V whole) {
    return hn::ShiftLeft<52>(hn::BitCast(integers, hn::Add(whole, round)));
  };
  const auto times_power = [&](V y, V whole) {
    return hn::BitCast(d, hn::Add(hn::BitCast(integers, y), exponent(whole)));
  };
  if constexpr (subnormals == Subnormals::zero) {
    return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, exponential_constants::kLowestNormal)),
                              times_power(power, n));
  }
  // In two steps, of which only the second can round.
  const V first = hn::Max(n, hn::Set(d, -500.0));
  return hn::Mul(times_power(power, first), times_power(hn::Set(d, 1.0), hn::Sub(n, first)));
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
