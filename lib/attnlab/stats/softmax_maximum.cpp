#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "attnlab/core/tensor.h"
#include "attnlab/stats/one_logit.h"
#include "attnlab/stats/softmax_theory.h"
#include "attnlab/stats/student_t.h"

namespace attnlab {
namespace {

// The positive nodes of the 10-point Gauss-Legendre rule on [-1, 1], and their weights.
constexpr int kNodes = 10;
constexpr double kLegendre[kNodes / 2][2] = {{0.1488743389816312, 0.2955242247147529},
                                             {0.4333953941292472, 0.2692667193099964},
                                             {0.6794095682990244, 0.2190863625159820},
                                             {0.8650633666889845, 0.1494513491505806},
                                             {0.9739065285171717, 0.0666713443086881}};

struct Rule {
  std::vector<double> nodes, weights;
};

// Gauss-Legendre panels of at most `width` on [0, end].
Rule panels(double end, double width) {
  const auto count = static_cast<int>(std::ceil(end / width));
  Rule rule;
  for (int i = 0; i < count; ++i) {
    const double half = end / count / 2, middle = (2 * i + 1) * half;
    for (const auto& [node, weight] : kLegendre) {
      for (const double sign : {-1.0, 1.0}) {
        rule.nodes.push_back(middle + sign * half * node);
        rule.weights.push_back(half * weight);
      }
    }
  }
  return rule;
}

// The density of x = y - z at the nodes, times their weights, for each y / s from `lowest` on in
// steps: [y, x]. From one step to the next a Gaussian changes by a factor that changes by another.
Matrix<double> density_below(const Rule& x, double s, double lowest, double step, Index count) {
  using Row = Eigen::Array<double, 1, Eigen::Dynamic>;
  const auto size = static_cast<Index>(x.nodes.size());
  const Row nodes = Eigen::Map<const Row>(x.nodes.data(), size);
  const Row z = lowest - nodes / s;
  const double unit = 1 / std::sqrt(2 * std::numbers::pi);
  Row value = Eigen::Map<const Row>(x.weights.data(), size) * (unit / s) * (-z.square() / 2).exp();
  Row factor = (-step * (z + step / 2)).exp();
  const double of_factor = std::exp(-step * step);
  Matrix<double> density(count, size);
  for (Index k = 0; k < count; ++k) {
    density.row(k) = value.matrix();
    value *= factor;
    factor *= of_factor;
  }
  return density;
}

// Up to here 1 - exp(-t e^-x), t = e^u, is kTerms of its series in t to all digits.
constexpr double kSeriesEnd = -8;
constexpr Index kTerms = 4;

// At each x the factors of t, t^2, .. in 1 - exp(-t e^-x), then itself for each t from `series` on.
Matrix<double> lost_below(const Rule& x, const Eigen::VectorXd& t, Index series) {
  Matrix<double> lost(static_cast<Index>(x.nodes.size()), kTerms + t.size() - series);
  for (Index j = 0; j < lost.rows(); ++j) {
    const double factor = std::exp(-x.nodes[static_cast<std::size_t>(j)]);
    double term = -1;
    for (Index k = 0; k < kTerms; ++k) {
      term *= -factor / static_cast<double>(k + 1);
      lost(j, k) = term;
    }
    for (Index i = series; i < t.size(); ++i) {
      lost(j, kTerms + i - series) = -std::expm1(-factor * t[i]);
    }
  }
  return lost;
}

double integrate_max_p(double n, double v) {
  const double s = std::sqrt(v);
  // The largest logit y = s g, outside of which its probability is below 1e-14.
  const double lowest = std::max(-kNormalReach, normal_quantile(std::exp(-37 / (n - 1))));
  const double highest = -normal_quantile(1e-14 / n);
  const double y_step = 0.35 / typical_normal_maximum(n);
  const auto y_count = static_cast<Index>((highest - lowest) / y_step) + 1;
  // t = e^u against sum e^{z - y}, which is between 0 and n - 1.
  constexpr double kUStep = 0.32;
  const double u_lowest = -std::log(n) - 26;
  const auto u_count = static_cast<Index>((kHighestExponent - u_lowest) / kUStep) + 1;
  const auto series = static_cast<Index>((kSeriesEnd - u_lowest) / kUStep) + 1;
  // x = y - z >= 0, until e^-x or the normal has ended.
  const double x_end = std::min(std::log(n) + 26, s * (highest + kNormalReach));
  const Rule x = panels(x_end, std::min(2.5, 2.5 * s));

  Eigen::VectorXd powers(u_count), gumbel(u_count);  // e^u and e^{u - e^u}
  for (Index i = 0; i < u_count; ++i) {
    const double u = u_lowest + kUStep * static_cast<double>(i);
    powers[i] = std::exp(u);
    gumbel[i] = std::exp(u - powers[i]);
  }
  const Matrix<double> deficits =
      density_below(x, s, lowest, y_step, y_count) * lost_below(x, powers, series);
  const auto deficit = [&](Index k, Index i) {
    if (i >= series) return deficits(k, kTerms + i - series);
    const double t = powers[i];
    return t * (deficits(k, 0) + t * (deficits(k, 1) + t * (deficits(k, 2) + t * deficits(k, 3))));
  };
  double sum = 0;
  for (Index k = 0; k < y_count; ++k) {
    const double g = lowest + y_step * static_cast<double>(k);
    const double above = normal_cdf(-g);
    double inner = 0;
    for (Index i = 0; i < u_count; ++i) {
      const double missing = std::min(1.0, above + deficit(k, i));
      const double log_power = (n - 1) * std::log1p(-missing);
      // Every further term is smaller.
      if (log_power < -50) break;
      inner += gumbel[i] * std::exp(log_power);
    }
    sum += std::exp(-g * g / 2) * inner;
  }
  return n * sum * y_step * kUStep / std::sqrt(2 * std::numbers::pi);
}

}  // namespace

double expected_max_p(std::uint64_t n, double v) {
  check_softmax(n, v);
  const auto keys = static_cast<double>(n);
  if (n == 1 || v < 1e-30) return 1 / keys;
  if (v <= kFrozenVariance) return integrate_max_p(keys, v);
  return 1 - std::sqrt(kFrozenVariance / v) * (1 - integrate_max_p(keys, kFrozenVariance));
}

double expected_normal_maximum(std::uint64_t n) {
  check_softmax(n, 0);
  if (n == 1) return 0;
  const auto count = static_cast<double>(n);
  // The median of M_n, so that the rest is an integral of one sign on each side.
  const double middle = normal_quantile(std::exp(-std::numbers::ln2 / count));
  const double step = 0.1 / typical_normal_maximum(count);
  double sum = 0;
  for (double x = middle - 10; x < middle + 12; x += step) {
    // Integration by parts of x n f(x) Phi(x)^{n-1}.
    const double log_phi = x < 0 ? std::log(normal_cdf(x)) : std::log1p(-normal_cdf(-x));
    sum += (x - middle) * std::exp(-x * x / 2 + (count - 1) * log_phi);
  }
  return middle + count * sum * step / std::sqrt(2 * std::numbers::pi);
}

}  // namespace attnlab
