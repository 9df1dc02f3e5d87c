#pragma once

#include <optional>
#include <span>
#include <string>

#include "attnlab/stats/moments.h"

namespace attnlab {

// A figure, its standard error and an interval that holds the truth with probability `confidence`.
// What is undefined is empty, and `reason` says why in one sentence.
struct Estimate {
  std::optional<double> value;
  std::optional<double> std_error;
  std::optional<double> low, high;
  std::string reason;

  bool has_interval() const { return low.has_value(); }
};

// Throws InputError unless 0 < confidence < 1.
void check_confidence(double confidence);

// The mean of independent values with mean -+ t S / sqrt(N), t of N - 1 degrees of freedom. Blocks
// of dependent values are given by the value of each block: then it is the t interval over blocks.
// Where the values' variance is infinite (`finite_variance` false) there is no valid interval.
Estimate mean_estimate(const Moments& sample, double confidence, bool finite_variance = true);

// The variance S^2 (divisor N - 1) of independent values, with the interval S^2 exp(-+ t se) on
// its logarithm, se = N / ((N-1)(N-2)) sqrt((N-1)/N (M4 - M2^2/N)) / S^2 and t of N - 1 degrees of
// freedom: the delta form of the jackknife. It needs four moments only, no normal distribution.
// The chi-square interval is no choice here: a product is never normal, and for one product of
// normals it holds the truth 68 times in 100 instead of 95.
// std_error is se S^2. Where the fourth moment is infinite (`finite_fourth_moment` false) no
// interval is valid at any N. Three values are needed at least.
Estimate variance_estimate(const Moments& sample, double confidence,
                           bool finite_fourth_moment = true);

// The variance of values that are dependent within blocks and independent between them, of mean
// zero: the mean over blocks of each block's mean square, with a t interval over blocks.
Estimate variance_over_blocks(std::span<const double> block_mean_squares, double confidence);

// Standard error of an estimate of the covariance term of Var(q.k) with d independent components
// of variance sigma^4 each from N pairs: sigma^4 sqrt(2 d (d - 1) / (N - 1)).
double covariance_term_std_error(double d, double sigma, double samples);

// A line through (x, y +- std_error) by weighted least squares, for ln S^2 on ln d: the slope, its
// standard error from the given errors, and the normal interval, which is right where the errors
// are known and not estimated from the scatter. chi2 = sum ((y - fit) / std_error)^2 with
// points - 2 degrees of freedom. Nothing with fewer than two distinct x.
struct LineFit {
  Estimate slope;
  std::optional<double> intercept;
  std::optional<double> chi2;
};
LineFit weighted_line_fit(std::span<const double> x, std::span<const double> y,
                          std::span<const double> std_errors, double confidence);

}  // namespace attnlab
