#include "attnlab/experiments/variance_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attnlab/experiments/scaling_list.h"
#include "attnlab/stats/interval.h"
#include "attnlab/stats/quantile.h"

namespace attnlab {
namespace {

// From here on one score among so many should not be a tenth of the fourth moment.
constexpr Index kTailSamples = 100000;
constexpr double kTailShare = 0.1;

// A score is multiplied by the factor, its variance divided by the divisor.
struct Scale {
  double factor = 1, divisor = 1;
};

std::optional<double> times(std::optional<double> value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}
std::optional<double> over(std::optional<double> value, double divisor) {
  return value ? std::optional(*value / divisor) : std::nullopt;
}

// The variance of a sample of scores. Without a valid interval the value stands alone.
Estimate estimate_of(const ScoreSample& sample, const VarianceOptions& options, bool finite) {
  const double confidence = options.sweep.confidence;
  if (options.sampling == Sampling::independent || !finite) {
    return variance_estimate(sample.moments, confidence, finite);
  }
  return variance_over_blocks(sample.block_mean_squares, confidence);
}

void add_robust(const ScoreSample& sample, double factor, VarianceRow& row) {
  if (sample.scores.empty()) return;
  const SortedSample sorted(sample.scores);
  row.interquartile_range = times(sorted.interquartile_range(), std::abs(factor));
  row.median_absolute_deviation = times(sorted.median_absolute_deviation(), std::abs(factor));
}

void add_components(const VarianceState& state, const ScoreSampler& sampler, double sigma,
                    double divisor, VarianceRow& row) {
  if (!state.components) return;
  row.component_variance_sum = over(state.components->variance_sum(), divisor);
  row.covariance_term = over(state.components->covariance_term(), divisor);
  if (sampler.is_plain() && sampler.theory().variance) {
    const double samples = static_cast<double>(state.samples[0].moments.count);
    row.covariance_term_std_error =
        covariance_term_std_error(static_cast<double>(sampler.d_k()), sigma, samples) / divisor;
  }
  const std::optional<double> total = sampler.theory().variance;
  const std::optional<double> sum = sampler.component_variance_sum();
  if (total && sum) row.theory_covariance_term = (*total - *sum) / divisor;
  if (!state.covariance) return;
  if (const auto matrix = state.covariance->matrix())
    row.components_total = matrix->sum() / divisor;
}

void compare(VarianceRow& row) {
  if (!row.theory_variance) return;
  if (*row.theory_variance > 0) row.ratio = row.variance / *row.theory_variance;
  if (row.std_error && *row.std_error > 0) {
    row.z = (row.variance - *row.theory_variance) / *row.std_error;
  }
}

// A row of a sample of scores, scaled.
VarianceRow row_of(const ScoreSample& sample, const VarianceOptions& options, bool finite,
                   Scale scale = {}) {
  VarianceRow row;
  row.samples = static_cast<Index>(sample.moments.count);
  row.mean = sample.moments.mean * scale.factor;
  const Estimate estimate = estimate_of(sample, options, finite);
  row.variance = estimate.value.value_or(0) / scale.divisor;
  row.std_error = over(estimate.std_error, scale.divisor);
  row.ci_low = over(estimate.low, scale.divisor);
  row.ci_high = over(estimate.high, scale.divisor);
  row.excess_kurtosis = sample.moments.excess_kurtosis();
  row.largest_fourth_power_share = sample.moments.largest_fourth_power_share();
  add_robust(sample, scale.factor, row);
  return row;
}

// Of a score bounded by its scaling: its variance is known where theory has it for any entries.
std::optional<double> function_variance(const Scaling& scaling, const ScoreSampler& sampler) {
  if (scaling.kind == ScalingKind::softcap || !sampler.is_plain()) return std::nullopt;
  // E cos^2 = 1/d for independent entries that are symmetric about 0, whatever their distribution.
  return logit_variance(scaling, static_cast<double>(sampler.d_k()), 1, 1);
}

}  // namespace

std::vector<VarianceRow> variance_rows(const VarianceOptions& options,
                                       const std::vector<Scaling>& scalings,
                                       const ScoreSampler& sampler, const VarianceState& state) {
  const ScoreTheory theory = sampler.theory();
  const auto d = static_cast<double>(sampler.d_k());
  std::vector<VarianceRow> rows;
  std::size_t function = 1;
  for (const Scaling& scaling : scalings) {
    const std::optional<double> factor = scaling_factor(scaling, d, 1, options.entries.sigma);
    VarianceRow row;
    if (factor) {
      const double divisor = *variance_divisor(scaling, d, 1, options.entries.sigma);
      row = row_of(state.samples[0], options, theory.finite_fourth_moment, {*factor, divisor});
      row.theory_mean = times(theory.mean, *factor);
      row.theory_variance = over(theory.variance, divisor);
      row.theory_excess_kurtosis = theory.excess_kurtosis;
      add_components(state, sampler, options.entries.sigma, divisor, row);
    } else {
      // Bounded scores have every moment.
      row = row_of(state.samples[function++], options, true);
      if (sampler.is_plain()) row.theory_mean = 0;
      row.theory_variance = function_variance(scaling, sampler);
    }
    row.d_k = sampler.d_k();
    row.scaling = scaling_name(scaling);
    if (theory.variance) row.alpha = std::sqrt(*theory.variance);
    compare(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<VarianceFit> variance_fit(const std::vector<VarianceRow>& rows,
                                        const VarianceOptions& options) {
  std::vector<double> x, y, errors;
  Index last = 0;
  for (const VarianceRow& row : rows) {
    const Scaling scaling = parse_scaling(row.scaling);
    const auto d = static_cast<double>(row.d_k);
    const std::optional<double> divisor = variance_divisor(scaling, d, 1, options.entries.sigma);
    if (row.d_k == last || !divisor || !row.std_error || !(*row.std_error > 0)) {
      continue;
    }
    last = row.d_k;
    x.push_back(std::log(d));
    // Back to q.k: every scaling that is a factor gives the same points.
    y.push_back(std::log(row.variance * *divisor));
    errors.push_back(*row.std_error / row.variance);
  }
  const LineFit line = weighted_line_fit(x, y, errors, options.sweep.confidence);
  if (!line.slope.value) return std::nullopt;
  return VarianceFit{line.slope.value, line.slope.std_error, line.slope.low,
                     line.slope.high,  line.intercept,       line.chi2};
}

std::string variance_finding(const std::vector<VarianceRow>& rows,
                             const std::optional<VarianceFit>& fit) {
  if (rows.empty()) return "";
  std::string text;
  if (fit) {
    text = fmt::format("The variance of q.k grows as d_k^{:.3f} (interval {:.3f} to {:.3f})",
                       *fit->slope, *fit->ci_low, *fit->ci_high);
  }
  // The largest d_k of each scaling tells the most.
  const Index most = std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
                       return a.d_k < b.d_k;
                     })->d_k;
  std::string at;
  for (const VarianceRow& row : rows) {
    if (row.d_k != most) continue;
    if (!at.empty()) at += ", ";
    at += fmt::format("{:.4g} {} (standard deviation {:.4g})", row.variance,
                      scaling_phrase(row.scaling), std::sqrt(row.variance));
  }
  text += text.empty() ? fmt::format("At d_k {} the variance of q.k is {}", most, at)
                       : fmt::format("; at d_k {} it is {}", most, at);
  Index held = 0, intervals = 0;
  for (const VarianceRow& row : rows) {
    if (!row.ci_low || !row.theory_variance) continue;
    ++intervals;
    held += *row.ci_low <= *row.theory_variance && *row.theory_variance <= *row.ci_high ? 1 : 0;
  }
  if (intervals > 0) text += fmt::format("; {} of {} intervals hold the theory", held, intervals);
  return text + ".";
}

void add_variance_notes(const VarianceOptions& options, VarianceResult& result) {
  const bool robust = std::any_of(result.rows.begin(), result.rows.end(),
                                  [](const VarianceRow& row) { return row.interquartile_range; });
  if (robust) {
    result.notes.emplace_back(
        "interval not valid: the fourth moment of the score is infinite; interquartile_range and "
        "median_absolute_deviation tell its spread");
  }
  if (std::any_of(result.rows.begin(), result.rows.end(), [](const VarianceRow& row) {
        return row.interquartile_range && !row.theory_variance;
      })) {
    result.notes.emplace_back("the variance of the score is infinite or undefined");
  }
  for (const VarianceRow& row : result.rows) {
    if (!robust && options.sweep.samples >= kTailSamples &&
        row.largest_fourth_power_share.value_or(0) > kTailShare) {
      result.notes.push_back(
          fmt::format("d_k {}: one score is {:.0f}% of the fourth moment, which may be infinite: "
                      "the interval may not be valid",
                      row.d_k, 100 * *row.largest_fourth_power_share));
      break;
    }
  }
}

}  // namespace attnlab
