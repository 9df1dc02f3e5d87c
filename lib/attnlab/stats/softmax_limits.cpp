#include "attnlab/stats/softmax_limits.h"

#include <cmath>
#include <numbers>

#include "attnlab/stats/shared_query.h"
#include "attnlab/stats/softmax_theory.h"
#include "attnlab/stats/student_t.h"

namespace attnlab {
namespace {

// psi(x), x > 0, by recurrence and its asymptotic series (DLMF 5.5.2, 5.11.2).
double digamma(double x) {
  double shifted = 0;
  for (; x < 12; ++x) shifted -= 1 / x;
  const double r2 = 1 / (x * x);
  const double series =
      r2 * (1.0 / 12 - r2 * (1.0 / 120 - r2 * (1.0 / 252 - r2 * (1.0 / 240 - r2 / 132))));
  return shifted + std::log(x) - 0.5 / x - series;
}

}  // namespace

double critical_variance(std::uint64_t n) { return 2 * std::log(static_cast<double>(n)); }

std::optional<FrozenSoftmax> frozen_softmax(double m) {
  if (!(m > 0 && m < 1)) return std::nullopt;
  return FrozenSoftmax{.m = m,
                       .sum_p2 = 1 - m,
                       .sum_p3 = (1 - m) * (2 - m) / 2,
                       .trace = m,
                       .entropy = digamma(1) - digamma(1 - m),
                       .jacobian_f2 = m * (1 - m) / 3};
}

std::optional<FrozenSoftmax> frozen_softmax(std::uint64_t n, double v) {
  if (!(v > 0)) return std::nullopt;
  return frozen_softmax(expected_normal_maximum(n) / std::sqrt(v));
}

std::optional<double> frozen_share_above(double m, double x) {
  if (!(m > 0 && m < 1 && x >= 0.5 && x < 1)) return std::nullopt;
  const double angle = std::numbers::pi * m;
  return std::sin(angle) / angle * std::pow((1 - x) / x, m);
}

SmallVarianceSoftmax small_variance_softmax(std::uint64_t n, double v) {
  const auto keys = static_cast<double>(n);
  const double c = 1 - 1 / keys;
  return {.sum_p2 = (1 + v * c + v * v / 2 * c * (1 - 6 / keys)) / keys,
          .entropy = std::log(keys) - v * c / 2 + 3 * v * v / (4 * keys) * c,
          .jacobian_f2 = c / keys * (1 + v * (1 - 4 / keys))};
}

double naive_overflow_share(std::uint64_t n, double v, double largest) {
  if (!(v > 0)) return 0;
  const double one = normal_cdf(-largest / std::sqrt(v));
  return -std::expm1(static_cast<double>(n) * std::log1p(-one));
}

double shared_naive_overflow_share(std::uint64_t n, double d, double v, double largest) {
  return chi_square_mean(d, v, [&](double x) { return naive_overflow_share(n, v * x, largest); });
}

}  // namespace attnlab
