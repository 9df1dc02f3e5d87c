#include "attnlab/stats/one_logit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attnlab/core/error.h"
#include "attnlab/stats/student_t.h"

namespace attnlab {
namespace {

// Wider normals have more points than are ever used.
constexpr double kWide = 16;

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

// At w, `x` after the first point of the table.
OneLogit::Values functions_at(double w, double x) {
  const double power = std::exp(w);
  const double decay = std::exp(-power);
  const double a1 = power * decay, a2 = power * a1;
  OneLogit::Values f;
  f << decay, -std::expm1(-power), a1, a2, power * a2, w * a1, x * a1, x * a2, x * x * a2, 0;
  return f;
}

}  // namespace

void check_softmax(std::uint64_t n, double v) {
  if (n < 1) throw InputError("", "keys", "0", "need at least 1");
  if (!(v >= 0 && std::isfinite(v))) {
    throw InputError("", "logit_variance", fmt::format("{}", v), "must be finite and not negative");
  }
}

double typical_normal_maximum(double n) { return std::max(1.0, std::sqrt(2 * std::log(n))); }

NormalGrid::NormalGrid(double s, double h)
    : ratio_(h / s), reach_(static_cast<Index>(kNormalReach / ratio_)) {
  if (s > kWide) return;
  weights_.resize(2 * reach_ + 1);
  below_.resize(2 * reach_ + 2);
  below_[0] = 0;
  for (Index j = -reach_; j <= reach_; ++j) {
    weights_[reach_ + j] = weight(j);
    below_[reach_ + j + 1] = below_[reach_ + j] + weight(j);
  }
}

double NormalGrid::weight(Index j) const {
  return ratio_ * density(static_cast<double>(j) * ratio_);
}

Eigen::Ref<const Eigen::VectorXd> NormalGrid::weights(Index j, Index count) {
  if (below_.size() > 0) return weights_.segment(j + reach_, count);
  weights_.resize(count);
  for (Index i = 0; i < count; ++i) weights_[i] = weight(j + i);
  return weights_;
}

double NormalGrid::below(Index j) const {
  if (below_.size() > 0) return below_[j + reach_];
  // Midpoint rule up to half a step before j, with its first two corrections: h / s is small.
  const double x = (static_cast<double>(j) - 0.5) * ratio_, r2 = ratio_ * ratio_;
  return normal_cdf(x) + r2 * x * (1.0 / 24 - r2 * 7 / 5760 * (x * x - 3)) * density(x);
}

OneLogit::OneLogit(double s)
    : h_(std::min(kQuadratureStep, s / 2.2)),
      normal_(s, h_),
      first_(static_cast<Index>(kLowestExponent / h_)),
      last_(static_cast<Index>(kHighestExponent / h_)),
      shared_(s >= 0.3) {
  // Around a narrow normal the grid is fine and few of its points are used: those are made there.
  if (shared_) fill(first_, last_ - first_ + 1);
}

OneLogit::Average OneLogit::at(Index i) {
  const Index from = std::max(first_, i - normal_.reach());
  const Index to = std::min(last_, i + normal_.reach());
  if (from > to) return {Values::Zero(), 0, 0};
  if (!shared_) fill(from, to - from + 1);
  const Eigen::Ref<const Eigen::VectorXd> weights = normal_.weights(from - i, to - from + 1);
  const auto functions = table_.middleCols(from - table_first_, to - from + 1);
  Average average;
  average.mean = functions * weights;
  // Beyond the table the functions are constants; the weights are symmetric.
  average.mean[kPhi] += normal_.below(from - i);
  average.mean[kOneMinusPhi] += normal_.below(i - to);
  const double a1 = average.mean[kA1], a2 = average.mean[kA2];
  const double centre = average.mean[kXA2] / a2;
  average.shift = centre - average.mean[kXA1] / a1;
  average.spread = average.mean[kXXA2] - centre * average.mean[kXA2];
  return average;
}

void OneLogit::fill(Index first, Index count) {
  table_first_ = first;
  table_.resize(kRows, count);
  for (Index k = 0; k < count; ++k) {
    table_.col(k) = functions_at(static_cast<double>(first + k) * h_, static_cast<double>(k) * h_);
  }
}

}  // namespace attnlab
