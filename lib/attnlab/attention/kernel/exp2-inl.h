// 2^x in vectors. Included once for every target, see hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_EXP2_INL_H_
#undef ATTNLAB_KERNEL_EXP2_INL_H_
#else
#define ATTNLAB_KERNEL_EXP2_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What Exp2 is made of: x = n + f with n whole and f in [-1/2, 1/2], 2^f by a polynomial, n into
// the exponent.
template <class T>
struct Exp2Constants;

// Minimax for the value 1 at 0, degree 6: 2^-28.
template <>
struct Exp2Constants<float> {
  static constexpr float kPolynomial[] = {1.5353362e-4f, 1.3398875e-3f, 9.618437e-3f, 5.5503324e-2f,
                                          2.4022648e-1f, 6.931472e-1f,  1.0f};
  static constexpr float kRound = 0x1.8p23f;  // added and taken away it leaves a whole number
  static constexpr float kLowest = -126;      // of normal numbers; below it 2^x is 0
  static constexpr int kMantissaBits = 23;
  using Integer = std::int32_t;
};

// ln(2)^k / k! to degree 13: 2^-57.
template <>
struct Exp2Constants<double> {
  static constexpr double kPolynomial[] = {1.3691488853904128e-12, 2.5678435993488206e-11,
                                           4.4455382718708116e-10, 7.054911620801123e-09,
                                           1.01780860092397e-07,   1.321548679014431e-06,
                                           1.5252733804059841e-05, 0.0001540353039338161,
                                           0.0013333558146428443,  0.009618129107628477,
                                           0.05550410866482158,    0.24022650695910072,
                                           0.6931471805599453,     1.0};
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLowest = -1022;
  static constexpr int kMantissaBits = 52;
  using Integer = std::int64_t;
};

// 2^x for x <= 0, -infinity included; 0 where it would be subnormal. Relative error below 1.4 times
// 2^-24 in float32 and 2^-53 in float64. NaN gives 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2(D d, V x) {
  using T = hn::TFromD<D>;
  using C = Exp2Constants<T>;
  const hn::Rebind<typename C::Integer, D> integers;
  const V lowest = hn::Set(d, C::kLowest);
  const auto normal = hn::Ge(x, lowest);
  x = hn::Max(x, lowest);
  const V round = hn::Set(d, C::kRound);
  const V shifted = hn::Add(x, round);
  const V f = hn::Sub(x, hn::Sub(shifted, round));
  V p = hn::Set(d, C::kPolynomial[0]);
  for (std::size_t i = 1; i < sizeof(C::kPolynomial) / sizeof(T); ++i) {
    p = hn::MulAdd(p, f, hn::Set(d, C::kPolynomial[i]));
  }
  // n stands in the low bits of `shifted`.
  const auto exponent = hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(integers, shifted));
  const V power = hn::BitCast(d, hn::Add(hn::BitCast(integers, p), exponent));
  return hn::IfThenElseZero(normal, power);
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
