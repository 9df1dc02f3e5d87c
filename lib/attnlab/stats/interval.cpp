#include "attnlab/stats/interval.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "attnlab/core/error.h"
#include "attnlab/stats/student_t.h"

namespace attnlab {
namespace {

void reach_out(Estimate& estimate, double reach) {
  estimate.low = *estimate.value - reach;
  estimate.high = *estimate.value + reach;
}

Estimate without_interval(std::optional<double> value, const char* reason) {
  Estimate estimate;
  estimate.value = value;
  estimate.reason = reason;
  return estimate;
}

}  // namespace

void check_confidence(double confidence) {
  if (!(confidence > 0 && confidence < 1)) {
    throw InputError("", "confidence", fmt::format("{}", confidence), "must be between 0 and 1");
  }
}

Estimate mean_estimate(const Moments& sample, double confidence, bool finite_variance) {
  check_confidence(confidence);
  if (sample.count == 0) return without_interval(std::nullopt, "there are no values");
  if (!finite_variance) {
    return without_interval(sample.mean, "interval not valid: the variance is infinite");
  }
  if (sample.count < 2) {
    return without_interval(sample.mean, "an interval of a mean needs at least 2 values");
  }
  Estimate estimate;
  estimate.value = sample.mean;
  estimate.std_error = sample.mean_std_error();
  const auto df = static_cast<double>(sample.count - 1);
  reach_out(estimate, student_t_two_sided_quantile(1 - confidence, df) * *estimate.std_error);
  return estimate;
}

Estimate variance_estimate(const Moments& sample, double confidence, bool finite_fourth_moment) {
  check_confidence(confidence);
  if (sample.count == 0) return without_interval(std::nullopt, "there are no values");
  if (sample.count < 2) {
    return without_interval(std::nullopt, "a variance needs at least 2 values");
  }
  const std::optional<double> variance = sample.variance();
  if (!finite_fourth_moment) {
    return without_interval(variance, "interval not valid: the fourth moment is infinite");
  }
  if (sample.count < 3) {
    return without_interval(variance, "an interval of a variance needs at least 3 values");
  }
  if (*variance == 0) return without_interval(variance, "all values are equal");
  const auto n = static_cast<double>(sample.count);
  // sum (c^2 - M2/N)^2 = M4 - M2^2/N, which rounding must not make negative.
  const double spread = std::max(0.0, sample.m4 - sample.m2 * (sample.m2 / n));
  double log_error = n / ((n - 1) * (n - 2)) * std::sqrt((n - 1) / n * spread) / *variance;
  // Of values that are nearly two of one size the linear term all but vanishes (kurtosis 1), and
  // the next one, 2 / (n (n - 1)), is what is left: Var S^2 = sigma^4 ((K - 1)/n + 2/(n (n - 1))).
  constexpr double kSmallTerm = 100;
  if (spread < kSmallTerm * *variance * *variance) {
    log_error = std::sqrt(log_error * log_error + 2 / (n * (n - 1)));
  }
  const double reach = student_t_two_sided_quantile(1 - confidence, n - 1) * log_error;
  Estimate estimate;
  estimate.value = variance;
  estimate.std_error = log_error * *variance;
  estimate.low = *variance * std::exp(-reach);
  estimate.high = *variance * std::exp(reach);
  return estimate;
}

Estimate variance_over_blocks(std::span<const double> block_mean_squares, double confidence) {
  return mean_estimate(moments_of(block_mean_squares), confidence);
}

double covariance_term_std_error(double d, double sigma, double samples) {
  const double sigma2 = sigma * sigma;
  return sigma2 * sigma2 * std::sqrt(2 * d * (d - 1) / (samples - 1));
}

LineFit weighted_line_fit(std::span<const double> x, std::span<const double> y,
                          std::span<const double> std_errors, double confidence) {
  check_confidence(confidence);
  LineFit fit;
  double weight_sum = 0, x_mean = 0, y_mean = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (std_errors[i] * std_errors[i]);
    if (!std::isfinite(weight) || !std::isfinite(x[i]) || !std::isfinite(y[i])) {
      fit.slope.reason = "a point has no standard error";
      return fit;
    }
    weight_sum += weight;
    x_mean += (x[i] - x_mean) * (weight / weight_sum);
    y_mean += (y[i] - y_mean) * (weight / weight_sum);
  }
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (std_errors[i] * std_errors[i]);
    xx += weight * (x[i] - x_mean) * (x[i] - x_mean);
    xy += weight * (x[i] - x_mean) * (y[i] - y_mean);
  }
  if (!(xx > 0)) {
    fit.slope.reason = "a slope needs at least 2 different values of d";
    return fit;
  }
  fit.slope.value = xy / xx;
  fit.slope.std_error = 1 / std::sqrt(xx);
  fit.intercept = y_mean - *fit.slope.value * x_mean;
  const double z =
      student_t_two_sided_quantile(1 - confidence, std::numeric_limits<double>::infinity());
  reach_out(fit.slope, z * *fit.slope.std_error);
  double chi2 = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double residual = (y[i] - *fit.intercept - *fit.slope.value * x[i]) / std_errors[i];
    chi2 += residual * residual;
  }
  fit.chi2 = chi2;
  return fit;
}

}  // namespace attnlab
