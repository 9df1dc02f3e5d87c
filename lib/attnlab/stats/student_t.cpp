#include "attnlab/stats/student_t.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Above this the expansion in 1/df is exact to rounding for every t that is not absurd.
constexpr double kManyDegrees = 1e5;

// ln(Gamma(a + 1/2) / Gamma(a)), without the cancellation of two large logarithms.
double log_gamma_half_step(double a) {
  double shifted = 0;
  for (; a < 30; ++a) shifted += std::log(a / (a + 0.5));
  const double r = 1 / a, r2 = r * r;
  const double series = r * (-1.0 / 8 + r2 * (1.0 / 192 + r2 * (-1.0 / 640 + r2 * (17.0 / 14336))));
  return shifted + 0.5 * std::log(a) + series;
}

// The continued fraction of the incomplete beta function I_x(a, b) (DLMF 8.17.22) by Lentz's
// method: I_x(a, b) = x^a (1-x)^b / (a B(a, b)) times its value. Converges fast for
// x < (a + 1)/(a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  const auto guarded = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / guarded(1 - (a + b) * x / (a + 1));
  double value = d;
  for (double m = 1; m < 100000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guarded(1 + even * d);
    c = guarded(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guarded(1 + odd * d);
    c = guarded(1 + odd / c);
    const double change = d * c;
    value *= change;
    if (std::fabs(change - 1) < 2.5e-16) break;
  }
  return value;
}

// What lies within [-t, t] and outside, each accurate where it is small.
struct TwoSided {
  double inside, outside;
};

TwoSided normal_two_sided(double z) {
  return {std::erf(z / std::numbers::sqrt2), std::erfc(z / std::numbers::sqrt2)};
}

// The normal quantile that has the probability of t (Abramowitz and Stegun 26.7.8 continued).
double normal_equivalent(double t, double df) {
  const double t2 = t * t, r = 1 / df;
  const double u1 = -t * (t2 + 1) / 4;
  const double u2 = t * ((13 * t2 + 8) * t2 + 3) / 96;
  const double u3 = -t * (((35 * t2 + 19) * t2 + 1) * t2 - 15) / 384;
  const double u4 = t * ((((6271 * t2 + 3224) * t2 - 102) * t2 - 1680) * t2 - 945) / 92160;
  return t + r * (u1 + r * (u2 + r * (u3 + r * u4)));
}

TwoSided two_sided(double t, double df) {
  if (t == 0) return {0, 1};
  if (std::isinf(t)) return {1, 0};
  if (std::isinf(df)) return normal_two_sided(t);
  const double t2 = t * t;
  if (df > kManyDegrees && t2 * t2 < 1e-1 * df) return normal_two_sided(normal_equivalent(t, df));
  // x = df / (df + t^2) and y = 1 - x without cancellation; t^2 may overflow.
  const double a = df / 2;
  const double log_x = std::isinf(t2) ? std::log(df) - 2 * std::log(t) : -std::log1p(t2 / df);
  const double x = std::exp(log_x);
  const double y = std::isinf(t2) ? 1 : t2 / (df + t2);
  const double front = std::exp(a * log_x + log_gamma_half_step(a)) * std::sqrt(y) *
                       (1 / std::sqrt(std::numbers::pi));
  if (x < (a + 1) / (a + 2.5)) {
    const double outside = front / a * beta_fraction(x, a, 0.5);
    return {1 - outside, outside};
  }
  const double inside = 2 * front * beta_fraction(y, 0.5, a);
  return {inside, 1 - inside};
}

// The t >= 0 with `reached(t)`, which is false below it and true from it on, by bisection to the
// last bit.
template <class Reached>
double first_reached(const Reached& reached) {
  double low = 0, high = 1;
  while (!reached(high) && high < kInfinity) {
    low = high;
    high *= 2;
  }
  if (std::isinf(high)) return kInfinity;
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) return high;
    (reached(middle) ? high : low) = middle;
  }
}

// The t with `outside` beyond -+t; `inside` is 1 - outside, given apart so that neither is rounded.
double two_sided_quantile(double outside, double inside, double df) {
  if (std::isnan(outside) || std::isnan(df)) return outside + df;
  if (inside <= 0) return 0;
  if (outside <= 0) return kInfinity;
  if (inside < outside) {
    return first_reached([&](double t) { return two_sided(t, df).inside >= inside; });
  }
  return first_reached([&](double t) { return two_sided(t, df).outside <= outside; });
}

}  // namespace

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double normal_quantile(double p) { return student_t_quantile(p, kInfinity); }

double student_t_cdf(double t, double df) {
  const TwoSided split = two_sided(std::fabs(t), df);
  return t < 0 ? 0.5 * split.outside : 0.5 + 0.5 * split.inside;
}

double student_t_quantile(double p, double df) {
  if (p < 0.5) return -two_sided_quantile(2 * p, 1 - 2 * p, df);
  return two_sided_quantile(2 * (1 - p), 2 * p - 1, df);
}

double student_t_two_sided(double t, double df) { return two_sided(std::fabs(t), df).outside; }

double student_t_two_sided_quantile(double p, double df) {
  return two_sided_quantile(p, 1 - p, df);
}

}  // namespace attnlab
