#include "attnlab/stats/softmax_theory.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/tensor.h"
#include "attnlab/stats/student_t.h"

// Integrands are analytic and fall off at least like a Gaussian or an exponential on both sides, so
// the trapezoid rule converges geometrically in the step. exp(-e^w) is analytic for |Im w| < pi/2:
// a step h leaves e^{-pi^2/h}, and a Gaussian of deviation s leaves e^{-2 (pi s/h)^2}.

namespace attnlab {
namespace {

constexpr double kStep = 0.15;
// Normals beyond this many deviations are left out: n times 1e-21.
constexpr double kReach = 9.5;
// Where exp(-e^w) is 1 and where it is 0.
constexpr double kLowest = -50, kHighest = 4.2;
// Where 1/sqrt(v) is all that is left to change.
constexpr double kFrozen = 1e12;

void check(std::uint64_t n, double v) {
  if (n < 1) throw InputError("", "keys", "0", "need at least 1");
  if (!(v >= 0 && std::isfinite(v))) {
    throw InputError("", "logit_variance", std::to_string(v), "must be finite and not negative");
  }
}

// How many deviations above the mean the largest of n normals is, roughly; at least 1.
double typical_maximum(double n) { return std::max(1.0, std::sqrt(2 * std::log(n))); }

// Rows of the table of functions of w.
enum Row { kPhi, kOneMinusPhi, kA1, kA2, kA3, kWA1, kWA2, kUnused, kRows };

using Functions = Eigen::Matrix<double, kRows, Eigen::Dynamic>;
using Values = Eigen::Matrix<double, kRows, 1>;

Values functions_at(double w) {
  const double power = std::exp(w);
  const double decay = std::exp(-power);
  const double a1 = power * decay;
  Values f;
  f << decay, -std::expm1(-power), a1, power * a1, power * power * a1, w * a1, w * power * a1, 0;
  return f;
}

// The trapezoid weights of N(0, s^2) on a grid of step h, and the sums of those below a point.
class NormalGrid {
 public:
  NormalGrid(double s, double h) : ratio_(h / s), reach_(static_cast<Index>(kReach / ratio_)) {
    if (s > kWide) return;
    weights_.resize(2 * reach_ + 1);
    below_.resize(2 * reach_ + 2);
    below_[0] = 0;
    for (Index j = -reach_; j <= reach_; ++j) {
      weights_[reach_ + j] = weight(j);
      below_[reach_ + j + 1] = below_[reach_ + j] + weight(j);
    }
  }

  Index reach() const { return reach_; }

  // The weights of the points from j on.
  Eigen::Ref<const Eigen::VectorXd> weights(Index j, Index count) {
    if (below_.size() > 0) return weights_.segment(j + reach_, count);
    weights_.resize(count);
    for (Index i = 0; i < count; ++i) weights_[i] = weight(j + i);
    return weights_;
  }

  // The sum of the weights of all points before j.
  double below(Index j) const {
    if (below_.size() > 0) return below_[j + reach_];
    // Midpoint rule up to half a step before j, with its first two corrections: h / s is small.
    const double x = (static_cast<double>(j) - 0.5) * ratio_, r2 = ratio_ * ratio_;
    return normal_cdf(x) + r2 * x * (1.0 / 24 - r2 * 7 / 5760 * (x * x - 3)) * density(x);
  }

 private:
  // Wider normals have more points than are ever used.
  static constexpr double kWide = 16;

  static double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
  double weight(Index j) const { return ratio_ * density(static_cast<double>(j) * ratio_); }

  double ratio_;
  Index reach_;
  Eigen::VectorXd weights_, below_;
};

// The one-logit functions at u = h i: averages over w = u + z on the grid of step h.
class OneLogit {
 public:
  explicit OneLogit(double s)
      : h_(std::min(kStep, s / 2.2)),
        normal_(s, h_),
        first_(static_cast<Index>(kLowest / h_)),
        last_(static_cast<Index>(kHighest / h_)),
        shared_(s >= 0.3) {
    // Around a narrow normal the grid is fine and few of its points are used: those are made there.
    if (shared_) fill(first_, last_ - first_ + 1);
  }

  double step() const { return h_; }

  struct Average {
    Values mean;
    double centre1, centre2;  // the mean of w under A_1 and under A_2
    double spread2;           // E e^{2w} exp(-e^w) (w - centre2)^2
  };
  Average at(Index i) {
    const Index from = std::max(first_, i - normal_.reach());
    const Index to = std::min(last_, i + normal_.reach());
    Average average{};
    if (from > to) {
      average.mean[from > last_ ? kOneMinusPhi : kPhi] = 1;
      return average;
    }
    if (!shared_) fill(from, to - from + 1);
    const Eigen::Ref<const Eigen::VectorXd> weights = normal_.weights(from - i, to - from + 1);
    const auto functions = table_.middleCols(from - table_first_, to - from + 1);
    average.mean = functions * weights;
    // Beyond the table the functions are constants; the weights are symmetric.
    average.mean[kPhi] += normal_.below(from - i);
    average.mean[kOneMinusPhi] += normal_.below(i - to);
    average.centre1 = average.mean[kWA1] / average.mean[kA1];
    average.centre2 = average.mean[kWA2] / average.mean[kA2];
    for (Index k = 0; k < weights.size(); ++k) {
      const double distance = static_cast<double>(from + k) * h_ - average.centre2;
      average.spread2 += weights[k] * functions(kA2, k) * (distance * distance);
    }
    return average;
  }

 private:
  void fill(Index first, Index count) {
    table_first_ = first;
    table_.resize(kRows, count);
    for (Index k = 0; k < count; ++k) {
      table_.col(k) = functions_at(static_cast<double>(first + k) * h_);
    }
  }

  double h_;
  NormalGrid normal_;
  Index first_, last_;
  bool shared_;
  Functions table_;
  Index table_first_ = 0;
};

SoftmaxTheory uniform_softmax(double n) {
  SoftmaxTheory theory;
  theory.sum_p2 = 1 / n;
  theory.sum_p3 = 1 / (n * n);
  theory.trace = (n - 1) / n;
  theory.jacobian_f2 = (n - 1) / (n * n);
  theory.entropy = theory.log_sum_exp = std::log(n);
  return theory;
}

SoftmaxTheory integrate(double n, double v) {
  const double s = std::sqrt(v);
  OneLogit logit(s);
  const double h = logit.step();
  // phi^n falls over 1 while the logits are close, over s / E[M_n] when they are far apart.
  const double outer = kStep * std::max(1.0, s / typical_maximum(n));
  const auto stride = std::max<Index>(1, static_cast<Index>(outer / h));
  // phi(u) <= P(u + z < kHighest): above the first u phi^{n-1} < e^-60.
  const double highest = kHighest - s * std::max(-kReach, normal_quantile(std::exp(-60 / (n - 1))));
  const double lowest = kLowest - kReach * s;

  const double pairs = n * (n - 1), triples = pairs * (n - 2);
  SoftmaxTheory sum;
  for (auto i = static_cast<Index>(highest / h); static_cast<double>(i) * h >= lowest;
       i -= stride) {
    const auto [mean, centre1, centre2, spread2] = logit.at(i);
    const double a1 = mean[kA1], a2 = mean[kA2];
    if (a1 == 0) continue;
    const double log_phi =
        mean[kOneMinusPhi] < 0.5 ? std::log1p(-mean[kOneMinusPhi]) : std::log(mean[kPhi]);
    const double phi1 = std::exp((n - 1) * log_phi);
    const double phi2 = pairs * std::exp((n - 2) * log_phi);
    const double phi3 = triples > 0 ? triples * std::exp((n - 3) * log_phi) : 0;
    const double u = static_cast<double>(i) * h;
    sum.sum_p2 += n * phi1 * a2;
    sum.sum_p3 += n * phi1 * mean[kA3] / 2;
    sum.trace += phi2 * a1 * a1;
    // p_i^2 (1-p_i)^2 + sum_j p_i^2 p_j^2 = 2 sum_j p_i^2 p_j^2 + sum_{j,k} p_i^2 p_j p_k.
    sum.jacobian_f2 += (2 * phi2 * a2 * a2 + phi3 * a2 * a1 * a1) / 6;
    // (z_i - sum p z)^2 = sum_{j,k} p_j p_k (z_i - z_j)(z_i - z_k).
    const double shift = centre2 - centre1;
    sum.spread += (2 * phi2 * a2 * spread2 + phi3 * a1 * a1 * (spread2 + a2 * shift * shift)) / 6;
    // -p ln p is the derivative of p^k by k at 1, up to the sign.
    sum.entropy -= n * phi1 * mean[kWA1];
    // phi^n is the probability that (a Gumbel variable - ln Z) is above u.
    sum.log_sum_exp -= n * phi1 * a1 * u;
    if (phi1 > 0.5 && n * a1 * (1 - u) < 1e-18) break;
  }
  const double width = h * static_cast<double>(stride);
  for (double* x : {&sum.sum_p2, &sum.sum_p3, &sum.trace, &sum.jacobian_f2, &sum.entropy,
                    &sum.log_sum_exp, &sum.spread}) {
    *x *= width;
  }
  sum.entropy -= std::numbers::egamma;
  sum.log_sum_exp -= std::numbers::egamma;
  return sum;
}

// Nodes and weights of the 10-point Gauss-Legendre rule on [0, 1].
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

double integrate_max_p(double n, double v) {
  const double s = std::sqrt(v);
  // The largest logit y = s g, outside of which its probability is below 1e-14.
  const double lowest = std::max(-kReach, normal_quantile(std::exp(-37 / (n - 1))));
  const double highest = -normal_quantile(1e-14 / n);
  const double y_step = 0.35 / typical_maximum(n);
  const auto y_count = static_cast<Index>((highest - lowest) / y_step) + 1;
  // t = e^u against sum e^{z - y}, which is between 0 and n - 1.
  constexpr double kUStep = 0.32;
  const double u_lowest = -std::log(n) - 26;
  const auto u_count = static_cast<Index>((kHighest - u_lowest) / kUStep) + 1;
  // x = y - z >= 0, until e^-x or the normal has ended.
  const double x_end = std::min(std::log(n) + 26, s * (highest + kReach));
  const Rule x = panels(x_end, std::min(2.5, 2.5 * s));
  const auto x_count = static_cast<Index>(x.nodes.size());

  Matrix<double> lost(x_count, u_count);  // 1 - exp(-t e^-x)
  for (Index j = 0; j < x_count; ++j) {
    const double factor = std::exp(-x.nodes[static_cast<std::size_t>(j)]);
    for (Index i = 0; i < u_count; ++i) {
      lost(j, i) = -std::expm1(-factor * std::exp(u_lowest + kUStep * static_cast<double>(i)));
    }
  }
  Eigen::VectorXd gumbel(u_count);  // e^{u - e^u}
  for (Index i = 0; i < u_count; ++i) {
    const double u = u_lowest + kUStep * static_cast<double>(i);
    gumbel[i] = std::exp(u - std::exp(u));
  }
  const double unit = 1 / std::sqrt(2 * std::numbers::pi);
  Matrix<double> density(y_count, x_count);
  for (Index k = 0; k < y_count; ++k) {
    const double g = lowest + y_step * static_cast<double>(k);
    for (Index j = 0; j < x_count; ++j) {
      const double z = g - x.nodes[static_cast<std::size_t>(j)] / s;
      density(k, j) = x.weights[static_cast<std::size_t>(j)] * (unit / s) * std::exp(-z * z / 2);
    }
  }
  const Matrix<double> deficit = density * lost;
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
    sum += unit * std::exp(-g * g / 2) * inner;
  }
  return n * sum * y_step * kUStep;
}

}  // namespace

SoftmaxTheory softmax_theory(std::uint64_t n, double v) {
  check(n, v);
  const auto keys = static_cast<double>(n);
  if (n == 1 || v < 1e-30) {
    SoftmaxTheory theory = uniform_softmax(keys);
    if (n == 1) theory.log_sum_exp = 0;
    theory.spread = v * (keys - 1) / (keys * keys);
    return theory;
  }
  if (v <= kFrozen) return integrate(keys, v);
  const double ratio = std::sqrt(kFrozen / v);
  SoftmaxTheory theory = integrate(keys, kFrozen);
  for (double* x : {&theory.trace, &theory.jacobian_f2, &theory.entropy, &theory.spread}) {
    *x *= ratio;
  }
  theory.sum_p2 = 1 - theory.trace;
  theory.sum_p3 = 1 - ratio * (1 - theory.sum_p3);
  theory.log_sum_exp /= ratio;
  return theory;
}

double expected_max_p(std::uint64_t n, double v) {
  check(n, v);
  const auto keys = static_cast<double>(n);
  if (n == 1 || v < 1e-30) return 1 / keys;
  if (v <= kFrozen) return integrate_max_p(keys, v);
  return 1 - std::sqrt(kFrozen / v) * (1 - integrate_max_p(keys, kFrozen));
}

double expected_normal_maximum(std::uint64_t n) {
  check(n, 0);
  if (n == 1) return 0;
  const auto count = static_cast<double>(n);
  // The median of M_n, so that the rest is an integral of one sign on each side.
  const double middle = normal_quantile(std::exp(-std::numbers::ln2 / count));
  const double step = 0.1 / typical_maximum(count);
  double sum = 0;
  for (double x = middle - 10; x < middle + 12; x += step) {
    // Integration by parts of x n f(x) Phi(x)^{n-1}.
    const double log_phi = x < 0 ? std::log(normal_cdf(x)) : std::log1p(-normal_cdf(-x));
    sum += (x - middle) * std::exp(-x * x / 2 + (count - 1) * log_phi);
  }
  return middle + count * sum * step / std::sqrt(2 * std::numbers::pi);
}

}  // namespace attnlab
