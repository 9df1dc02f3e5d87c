#include "attnlab/stats/softmax_theory.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attnlab/stats/one_logit.h"
#include "attnlab/stats/student_t.h"

namespace attnlab {
namespace {

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
  const double outer = kQuadratureStep * std::max(1.0, s / typical_normal_maximum(n));
  const auto stride = std::max<Index>(1, static_cast<Index>(outer / h));
  // phi(u) <= P(u + z < kHighestExponent): above the first u phi^{n-1} < e^-60.
  const double highest =
      kHighestExponent - s * std::max(-kNormalReach, normal_quantile(std::exp(-60 / (n - 1))));
  const double lowest = kLowestExponent - kNormalReach * s;

  const double pairs = n * (n - 1), triples = pairs * (n - 2);
  SoftmaxTheory sum;
  for (auto i = static_cast<Index>(highest / h); static_cast<double>(i) * h >= lowest;
       i -= stride) {
    const auto [mean, shift, spread] = logit.at(i);
    const double a1 = mean[OneLogit::kA1], a2 = mean[OneLogit::kA2];
    if (a1 == 0) continue;
    const double log_phi = mean[OneLogit::kOneMinusPhi] < 0.5
                               ? std::log1p(-mean[OneLogit::kOneMinusPhi])
                               : std::log(mean[OneLogit::kPhi]);
    const double phi1 = std::exp((n - 1) * log_phi);
    const double phi2 = pairs * std::exp((n - 2) * log_phi);
    const double phi3 = triples > 0 ? triples * std::exp((n - 3) * log_phi) : 0;
    const double u = static_cast<double>(i) * h;
    sum.sum_p2 += n * phi1 * a2;
    sum.sum_p3 += n * phi1 * mean[OneLogit::kA3] / 2;
    sum.trace += phi2 * a1 * a1;
    // p_i^2 (1-p_i)^2 + sum_j p_i^2 p_j^2 = 2 sum_j p_i^2 p_j^2 + sum_{j,k} p_i^2 p_j p_k.
    sum.jacobian_f2 += (2 * phi2 * a2 * a2 + phi3 * a2 * a1 * a1) / 6;
    // (z_i - sum p z)^2 = sum_{j,k} p_j p_k (z_i - z_j)(z_i - z_k).
    sum.spread += (2 * phi2 * a2 * spread + phi3 * a1 * a1 * (spread + a2 * shift * shift)) / 6;
    // -p ln p is the derivative of p^k by k at 1, up to the sign.
    sum.entropy -= n * phi1 * mean[OneLogit::kWA1];
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

}  // namespace

SoftmaxTheory softmax_theory(std::uint64_t n, double v) {
  check_softmax(n, v);
  const auto keys = static_cast<double>(n);
  if (n == 1 || v < 1e-30) {
    SoftmaxTheory theory = uniform_softmax(keys);
    theory.spread = v * (keys - 1) / (keys * keys);
    return theory;
  }
  if (v <= kFrozenVariance) return integrate(keys, v);
  const double ratio = std::sqrt(kFrozenVariance / v);
  SoftmaxTheory theory = integrate(keys, kFrozenVariance);
  for (double* x : {&theory.trace, &theory.jacobian_f2, &theory.entropy, &theory.spread}) {
    *x *= ratio;
  }
  theory.sum_p2 = 1 - theory.trace;
  theory.sum_p3 = 1 - ratio * (1 - theory.sum_p3);
  theory.log_sum_exp /= ratio;
  return theory;
}

}  // namespace attnlab
