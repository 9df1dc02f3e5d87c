// Powers in vectors. Included once for every target, see hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_EXP_INL_H_
#undef ATTNLAB_KERNEL_EXP_INL_H_
#else
#define ATTNLAB_KERNEL_EXP_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What a power is taken of. Base two costs a third less: scores that are multiplied by log2(e) as
// soon as K is packed give the weights of base e without another rounding.
enum class Base { e, two };

template <class T>
struct PowerConstants;

template <>
struct PowerConstants<float> {
  // Minimax with 1 + r at its start, degree 6: 2^-28.
  static constexpr float kPolynomialE[] = {
      1.3814539e-3f, 8.3687454e-3f, 4.1668389e-2f, 1.6666521e-1f, 0.49999994f, 1.0f, 1.0f};
  // Minimax with 1 at its start, degree 6: 2^-27 as rounded.
  static constexpr float kPolynomialTwo[] = {1.53533649e-4f,
                                             1.33988773e-3f,
                                             9.61843785e-3f,
                                             5.55033311e-2f,
                                             2.40226448e-1f,
                                             6.93147182e-1f,
                                             1.0f};
  static constexpr float kLog2E = 1.4426950216293335f;
  static constexpr float kLn2High = 0x1.62e4000000000p-1f, kLn2Low = 0x1.7f7d1c0000000p-20f;
  static constexpr float kRound = 0x1.8p23f;  // added and taken away it leaves a whole number
  // The power is normal from here on, and below it 0.
  static constexpr float kLowestE = -87.3f, kLowestTwo = -126.0f;
  static constexpr int kMantissaBits = 23;
  using Integer = std::int32_t;
};

template <>
struct PowerConstants<double> {
  // 1 / k! to degree 13: 2^-57.
  static constexpr double kPolynomialE[] = {1.6059043836821613e-10,
                                            2.08767569878681e-09,
                                            2.505210838544172e-08,
                                            2.755731922398589e-07,
                                            2.7557319223985893e-06,
                                            2.48015873015873e-05,
                                            0.0001984126984126984,
                                            0.001388888888888889,
                                            0.008333333333333333,
                                            0.041666666666666664,
                                            0.16666666666666666,
                                            0.5,
                                            1.0,
                                            1.0};
  // (ln 2)^k / k!
  static constexpr double kPolynomialTwo[] = {1.3691488853904128e-12, 2.5678435993488206e-11,
                                              4.4455382718708116e-10, 7.054911620801123e-09,
                                              1.01780860092397e-07,   1.321548679014431e-06,
                                              1.5252733804059841e-05, 0.0001540353039338161,
                                              0.0013333558146428443,  0.009618129107628477,
                                              0.05550410866482158,    0.24022650695910072,
                                              0.6931471805599453,     1.0};
  static constexpr double kLog2E = 1.4426950408889634;
  static constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLowestE = -708.3, kLowestTwo = -1022.0;
  static constexpr int kMantissaBits = 52;
  using Integer = std::int64_t;
};

// A power is n whole powers of two and base^r of a rest r of at most half of one: the polynomial's,
// n into its exponent. What comes of x so low that the power would not be normal is no number, and
// is not taken. Relative error, in units of 2^-24 in float32 and 2^-53 in float64, below 1.3 with
// fused multiply-adds and 1.7 without (measured over 4 million arguments), its root mean square
// 0.40 and 0.45.

template <class D, std::size_t size, class V = hn::Vec<D>>
HWY_INLINE V polynomial_at(D d, const hn::TFromD<D> (&coefficients)[size], V r) {
  V p = hn::Set(d, coefficients[0]);
  for (std::size_t i = 1; i < size; ++i) p = hn::MulAdd(p, r, hn::Set(d, coefficients[i]));
  return p;
}

// x, rounded to whole numbers, in the low bits of 1.5 2^23 + x (2^52 in float64): those are in the
// order of x as whole numbers without sign, up to negative x beyond all powers, infinities and NaN,
// which are above the others.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V shifted_to_whole(D d, V x) {
  return hn::Add(x, hn::Set(d, PowerConstants<hn::TFromD<D>>::kRound));
}

// 2^x for x up to 64, -infinity included, `shifted` its shifted_to_whole; 0 where it would be
// subnormal, and of NaN any number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V power_of_two(D d, V x, V shifted) {
  using C = PowerConstants<hn::TFromD<D>>;
  const hn::Rebind<typename C::Integer, D> integers;
  const V r = hn::Sub(x, hn::Sub(shifted, hn::Set(d, C::kRound)));
  const V p = polynomial_at(d, C::kPolynomialTwo, r);
  const auto exponent = hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(integers, shifted));
  const V whole = hn::BitCast(d, hn::Add(hn::BitCast(integers, p), exponent));
  // So x itself is not needed to the end, and keeps no register.
  const auto too_low = hn::BitCast(integers, hn::Set(d, C::kRound + C::kLowestTwo - 1));
  const auto normal = hn::Gt(hn::BitCast(integers, shifted), too_low);
  return hn::IfThenElseZero(hn::RebindMask(d, normal), whole);
}

// base^x alike; of NaN it is 0 in base e. ln 2 is in two parts, the first so short that n times it
// is exact.
template <Base base, class D, class V = hn::Vec<D>>
HWY_INLINE V power(D d, V x) {
  if constexpr (base == Base::two) {
    return power_of_two(d, x, shifted_to_whole(d, x));
  } else {
    using C = PowerConstants<hn::TFromD<D>>;
    const hn::Rebind<typename C::Integer, D> integers;
    const V round = hn::Set(d, C::kRound);
    const V shifted = hn::MulAdd(x, hn::Set(d, C::kLog2E), round);
    const V n = hn::Sub(shifted, round);
    const V r =
        hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x));
    const V p = polynomial_at(d, C::kPolynomialE, r);
    const auto exponent = hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(integers, shifted));
    const V whole = hn::BitCast(d, hn::Add(hn::BitCast(integers, p), exponent));
    return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, C::kLowestE)), whole);
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
