#include "attnlab/stats/gradient_theory.h"

#include <fmt/format.h>

#include <cmath>

#include "attnlab/core/error.h"
#include "attnlab/stats/shared_query.h"

namespace attnlab {
namespace {

void require(bool holds, const char* field, double value, const char* rule) {
  if (!holds) throw InputError("", field, fmt::format("{}", value), rule);
}

// Keys and d_k are checked with the softmax.
void check(const GradientLaw& law) {
  require(law.d_v >= 1, "d_v", law.d_v, "need at least 1");
  require(std::isfinite(law.scale), "scale", law.scale, "must be finite");
  const auto check_sigma = [](const char* field, double sigma) {
    require(sigma > 0 && std::isfinite(sigma), field, sigma, "must be positive and finite");
  };
  check_sigma("sigma_q", law.sigma_q);
  check_sigma("sigma_k", law.sigma_k);
  check_sigma("sigma_v", law.sigma_v);
}

}  // namespace

GradientTheory gradient_theory(const GradientLaw& law) {
  check(law);
  const double n = static_cast<double>(law.keys), d = law.d_k;
  const double a2 = law.scale * law.scale;
  const double q2 = law.sigma_q * law.sigma_q, k2 = law.sigma_k * law.sigma_k;
  GradientTheory theory;
  theory.logit_variance = a2 * d * q2 * k2;
  const SharedQueryTheory softmax =
      shared_query_theory(law.keys, d, theory.logit_variance, /*with_max_p=*/false);
  // |V' dO|^2 of one key, on average.
  const double signal = law.d_v * law.sigma_v * law.sigma_v;
  theory.scores = signal * softmax.mean.jacobian_f2;
  theory.v = law.d_v * softmax.mean.sum_p2;
  theory.k = a2 * signal * d * q2 * softmax.jacobian_f2_x;
  theory.q =
      signal * (a2 * (d - 1) * k2 * softmax.mean.jacobian_f2 + softmax.spread_over_x / (d * q2));
  theory.rms_scores = std::sqrt(theory.scores / n);
  theory.rms_q = std::sqrt(theory.q / d);
  theory.rms_k = std::sqrt(theory.k / (n * d));
  theory.rms_v = std::sqrt(theory.v / (n * law.d_v));
  return theory;
}

}  // namespace attnlab
