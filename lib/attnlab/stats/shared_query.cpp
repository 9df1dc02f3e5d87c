#include "attnlab/stats/shared_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

struct Node {
  double x, weight;
};

// ln(a^a e^-a / Gamma(a)).
double log_gamma_density_factor(double a) {
  if (a < 10) return a * std::log(a) - a - std::lgamma(a);
  const double r = 1 / a, r2 = r * r;
  const double stirling = r * (1.0 / 12 - r2 * (1.0 / 360 - r2 * (1.0 / 1260 - r2 / 1680)));
  return 0.5 * std::log(a / (2 * std::numbers::pi)) - stirling;
}

// Nodes and weights for the mean of F(X/d). The density of y = ln x is
// a^a / Gamma(a) exp(a (y - e^y)), a = d/2: a Gaussian of deviation 1/sqrt(a) for large a, with a
// long lower tail for small a. There y = t - e^{c-t} makes the fall doubly exponential in t, from
// where F has become constant (x = 1/v) on. How far F is analytic around the real axis decides the
// step: least far where e^v crosses n.
std::vector<Node> chi_square_nodes(double d, double v) {
  if (!(d >= 1 && std::isfinite(d))) {
    throw InputError("", "d_k", fmt::format("{}", d), "need at least 1");
  }
  constexpr double kNegligible = -42;
  const double a = d / 2;
  const double step = std::min(0.18, 0.75 / std::sqrt(a));
  const double tail = a < 8 ? std::exp(-1) / std::max(1.0, v) : 0;
  const double factor = std::exp(log_gamma_density_factor(a)) * step;
  std::vector<Node> nodes;
  const auto walk = [&](int from, int by) {
    for (int k = from;; k += by) {
      const double t = k * step;
      const double y = t - tail * std::exp(-t);
      const double exponent = a * (y - std::expm1(y));
      if (exponent < kNegligible) return;
      nodes.push_back({std::exp(y), factor * std::exp(exponent) * (1 + tail * std::exp(-t))});
    }
  };
  walk(0, 1);
  walk(-1, -1);
  return nodes;
}

}  // namespace

double chi_square_mean(double d, double v, const std::function<double(double)>& f) {
  double sum = 0;
  for (const auto& [x, weight] : chi_square_nodes(d, v)) sum += weight * f(x);
  return sum;
}

SharedQueryTheory shared_query_theory(std::uint64_t n, double d, double v, bool with_max_p) {
  SharedQueryTheory theory;
  SoftmaxTheory& mean = theory.mean;
  for (const auto& [x, weight] : chi_square_nodes(d, v)) {
    const SoftmaxTheory at = softmax_theory(n, v * x);
    mean.sum_p2 += weight * at.sum_p2;
    mean.sum_p3 += weight * at.sum_p3;
    mean.trace += weight * at.trace;
    mean.jacobian_f2 += weight * at.jacobian_f2;
    mean.entropy += weight * at.entropy;
    mean.log_sum_exp += weight * at.log_sum_exp;
    mean.spread += weight * at.spread;
    theory.jacobian_f2_x += weight * x * at.jacobian_f2;
    theory.spread_over_x += weight * (at.spread / x);
    if (with_max_p) theory.max_p += weight * expected_max_p(n, v * x);
  }
  return theory;
}

}  // namespace attnlab
