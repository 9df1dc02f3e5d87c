#include "attnlab/experiments/saturation_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attnlab/experiments/scaling_list.h"
#include "attnlab/stats/interval.h"
#include "attnlab/stats/quantile.h"
#include "attnlab/stats/shared_query.h"
#include "attnlab/stats/softmax_limits.h"

namespace attnlab {
namespace {

// The small-v forms are meant for v below this.
constexpr double kSmallVariance = 1;

std::uint64_t keys_of(const SaturationCase& of) { return static_cast<std::uint64_t>(of.keys); }

// Exact means in the order of Metric; nothing where the logits are not normal given the query.
std::optional<std::array<double, kMainMetrics>> theory_of(const SaturationOptions& options,
                                                          const SaturationCase& of) {
  const auto in_order = [](const SoftmaxTheory& mean, double max_p) {
    return std::array{max_p, mean.sum_p2, mean.entropy, mean.jacobian_f2, mean.trace};
  };
  if (!of.d_k) {
    return in_order(softmax_theory(keys_of(of), of.logit_variance),
                    expected_max_p(keys_of(of), of.logit_variance));
  }
  if (options.entries.distribution != Distribution::normal || !has_normal_logits(*of.scaling)) {
    return std::nullopt;
  }
  const SharedQueryTheory theory =
      shared_query_theory(keys_of(of), static_cast<double>(*of.d_k), of.logit_variance);
  return in_order(theory.mean, theory.max_p);
}

double count_of(const RowSample& sample, Count count) {
  return sample.counts[static_cast<std::size_t>(count)];
}

// Shares of all weights and of all entries of J.
void set_shares(const RowSample& sample, const SaturationCase& of, SaturationRow& row) {
  const auto rows = static_cast<double>(row.samples);
  const auto n = static_cast<double>(of.keys);
  row.near_zero_share = count_of(sample, Count::near_zero) / (rows * n * n);
  row.exact_zero_share = count_of(sample, Count::exact_zero) / (rows * n);
  row.subnormal_share = count_of(sample, Count::subnormal) / (rows * n);
  row.naive_nan_share = count_of(sample, Count::naive_nan) / rows;
}

// Closed forms beside the quadrature, where they are meant to hold.
void set_limits(const SaturationCase& of, SaturationRow& row) {
  const double v = of.logit_variance;
  row.critical_variance = critical_variance(keys_of(of));
  if (v > 0) row.saturation = expected_normal_maximum(keys_of(of)) / std::sqrt(v);
  if (v > *row.critical_variance) {
    if (const auto frozen = frozen_softmax(keys_of(of), v)) {
      row.frozen_sum_p2 = frozen->sum_p2;
      row.frozen_entropy = frozen->entropy;
      row.frozen_jacobian_f2 = frozen->jacobian_f2;
      row.frozen_above_9 = frozen_share_above(frozen->m, 0.9);
      row.frozen_above_99 = frozen_share_above(frozen->m, 0.99);
      row.frozen_above_999 = frozen_share_above(frozen->m, 0.999);
    }
  }
  if (v < kSmallVariance) {
    const SmallVarianceSoftmax small = small_variance_softmax(keys_of(of), v);
    row.small_v_sum_p2 = small.sum_p2;
    row.small_v_entropy = small.entropy;
    row.small_v_jacobian_f2 = small.jacobian_f2;
  }
}

std::string described(const SaturationRow& row) {
  const std::string which = row.scaling
                                ? scaling_phrase(*row.scaling)
                                : fmt::format("at v = {:.4g}", row.logit_variance.value_or(0));
  return fmt::format(
      "{:.4g} effective keys {}, with the mean of ||J||_F^2 {:.3g} and the median of ||J||_F "
      "{:.3g}",
      row.effective_keys, which, row.jacobian_f2.mean, row.jacobian_f_median.value_or(0));
}

}  // namespace

void set_measured(const SaturationOptions& options, const RowSample& sample, SaturationRow& row) {
  const auto mean = [&](Metric metric) {
    return sample.metrics[static_cast<std::size_t>(metric)].mean;
  };
  for_each_main_metric(row, [&](auto& columns, Metric metric) {
    columns.mean = mean(metric);
    if (options.quantiles.empty()) return;
    const SortedSample sorted(sample.kept[static_cast<std::size_t>(metric)]);
    for (const double p : options.quantiles) {
      columns.quantiles.push_back(sorted.quantile(p).value_or(0));
    }
  });
  row.samples = static_cast<Index>(sample.jacobian_f.size());
  row.effective_keys = mean(Metric::effective_keys);
  row.perplexity = mean(Metric::perplexity);
  row.lambda_max = mean(Metric::lambda_max);
  row.jacobian_f_rms = std::sqrt(row.jacobian_f2.mean);
  row.jacobian_f_median = median_of(sample.jacobian_f);
  const auto rows = static_cast<double>(row.samples);
  row.share_max_above_9 = count_of(sample, Count::max_above_9) / rows;
  row.share_max_above_99 = count_of(sample, Count::max_above_99) / rows;
  row.share_max_above_999 = count_of(sample, Count::max_above_999) / rows;
  row.max_one_share = count_of(sample, Count::max_one) / rows;
}

SaturationRow saturation_row(const SaturationOptions& options, const SaturationCase& of,
                             const RowSample& sample) {
  SaturationRow row;
  row.d_k = of.d_k;
  row.keys = of.keys;
  if (of.scaling) row.scaling = scaling_name(*of.scaling);
  row.logit_variance = of.logit_variance;
  set_measured(options, sample, row);
  set_shares(sample, of, row);
  if (of.keys > 1) {
    row.entropy_share = row.entropy.mean / std::log(static_cast<double>(of.keys));
    row.log_odds_gap = sample.metrics[static_cast<std::size_t>(Metric::log_odds_gap)].mean;
  }
  const bool shared = options.logits == Logits::dot && options.key_draw == KeyDraw::reuse;
  const auto theory = theory_of(options, of);
  for_each_main_metric(row, [&](auto& columns, Metric metric) {
    const auto i = static_cast<std::size_t>(metric);
    const Estimate estimate =
        mean_estimate(shared ? sample.block_means[i] : sample.metrics[i], options.sweep.confidence);
    columns.ci_low = estimate.low;
    columns.ci_high = estimate.high;
    if (theory) columns.theory = (*theory)[i];
  });
  set_limits(of, row);
  if (theory) {
    row.naive_nan_share_theory =
        of.d_k ? shared_naive_overflow_share(keys_of(of), static_cast<double>(*of.d_k),
                                             of.logit_variance)
               : naive_overflow_share(keys_of(of), of.logit_variance);
  }
  return row;
}

std::string saturation_finding(const std::vector<SaturationRow>& rows) {
  if (rows.empty()) return "";
  // The largest of the last number of keys tells the most.
  const SaturationRow& last = rows.back();
  const Index keys = last.keys;
  Index most = 0;
  for (const SaturationRow& row : rows) most = std::max(most, row.d_k.value_or(0));
  std::string text =
      last.d_k ? fmt::format("At d_k {} a softmax over {} keys has", most, keys)
               : fmt::format("Of independent normal logits a softmax over {} keys has", keys);
  const char* separator = " ";
  double held = 0, intervals = 0;
  for (const SaturationRow& row : rows) {
    if (row.keys == keys && row.d_k.value_or(0) == most) {
      text += separator + described(row);
      separator = "; ";
    }
    for (const auto& [low, high, theory] :
         {std::tuple(row.sum_p2.ci_low, row.sum_p2.ci_high, row.sum_p2.theory),
          std::tuple(row.entropy.ci_low, row.entropy.ci_high, row.entropy.theory)}) {
      if (!low || !theory) continue;
      ++intervals;
      held += *low <= *theory && *theory <= *high ? 1 : 0;
    }
  }
  if (intervals > 0) {
    text +=
        fmt::format("; {} of {} intervals of sum p^2 and entropy hold the theory", held, intervals);
  }
  return text + ".";
}

}  // namespace attnlab
