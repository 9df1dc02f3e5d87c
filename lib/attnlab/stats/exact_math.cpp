#include "attnlab/stats/exact_math.h"

#include <bit>
#include <cmath>
#include <initializer_list>

namespace attnlab {
namespace {

constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 32 bits, so that k kLn2High is exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// ln(1 + t) on [sqrt(1/2) - 1, sqrt(2) - 1]: with s = t / (2 + t), ln(1 + t) = 2 atanh(s)
// = t - t^2/2 + s (t^2/2 + z A(z)), z = s^2. A is the series 2/3 + 2z/5 + .. to z^11: z <= 0.0295
// leaves 2^-63.
double log_one_plus(double t) {
  const double s = t / (2 + t);
  const double z = s * s;
  double a = 2.0 / 25;
  for (const double c : {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
                         2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3}) {
    a = std::fma(a, z, c);
  }
  const double half_square = 0.5 * t * t;
  return t - std::fma(-s, std::fma(z, a, half_square), half_square);
}

}  // namespace

double log_uniform64(std::uint64_t bits) {
  // Above 1/2 the double nearest to u forgets most of 1 - u, so that 1 - u is taken there instead.
  const bool upper = (bits >> 63) != 0;
  const double distance = std::fma(static_cast<double>(upper ? ~bits : bits), 0x1p-64, 0x1p-65);
  // u = m 2^e with m in [sqrt(1/2), sqrt(2)).
  constexpr std::int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  const double u = upper ? 1 - distance : distance;
  const auto u_bits = std::bit_cast<std::int64_t>(u);
  const std::int64_t e = (u_bits - kSqrtHalf) >> 52;
  const auto m = std::bit_cast<double>(u_bits - e * (std::int64_t{1} << 52));
  const double t = upper ? (e == 0 ? -distance : std::fma(-2.0, distance, 1.0)) : m - 1;
  const auto k = static_cast<double>(e);
  return std::fma(k, kLn2High, std::fma(k, kLn2Low, log_one_plus(t)));
}

double exp_minus_one(double a) {
  const auto k = static_cast<std::int64_t>(std::fma(a, 0x1.71547652b82fep+0, 0.5));
  const auto power = static_cast<double>(k);
  const double f = std::fma(-power, kLn2Low, std::fma(-power, kLn2High, a));
  // e^f - 1 on [-ln2/2, ln2/2] by its series: f^15/15! leaves 2^-62.
  double p = 1.0 / 87178291200;
  for (const double c :
       {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
        1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2}) {
    p = std::fma(p, f, c);
  }
  p = std::fma(f * f, p, f);
  const auto two_k = std::bit_cast<double>((k + 1023) << 52);
  return std::fma(two_k, p, two_k - 1);
}

}  // namespace attnlab
