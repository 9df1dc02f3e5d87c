#include "attnlab/experiments/head_saturation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "attnlab/core/error.h"
#include "attnlab/experiments/given_weights.h"
#include "attnlab/experiments/saturation_rows.h"
#include "attnlab/stats/interval.h"
#include "attnlab/stats/monte_carlo.h"
#include "attnlab/stats/softmax_limits.h"
#include "attnlab/stats/softmax_theory.h"

namespace attnlab {
namespace {

// More than random scores of eight keys stand off their theory.
constexpr double kClearlyLess = 0.1;

// Of the metrics with theory, in the order of Metric.
using MainMetrics = std::array<double, kMainMetrics>;

// The rows of a head that see a key.
struct HeadSample {
  RowSample rows;
  std::array<Moments, kMainMetrics> theory;
  Moments keys_seen, critical_variance;
  Moments logit_variance, entropy_share, log_odds_gap;  // of rows that see two keys or more
  double zeros = 0;                                     // weights
  double jacobian_entries = 0;                          // n^2 of each row

  void merge(const HeadSample& other) {
    rows.merge(other.rows);
    for (std::size_t i = 0; i < kMainMetrics; ++i) theory[i].merge(other.theory[i]);
    keys_seen.merge(other.keys_seen);
    critical_variance.merge(other.critical_variance);
    logit_variance.merge(other.logit_variance);
    entropy_share.merge(other.entropy_share);
    log_odds_gap.merge(other.log_odds_gap);
    zeros += other.zeros;
    jacobian_entries += other.jacobian_entries;
  }
};

MainMetrics theory_of(std::uint64_t n, double v) {
  const SoftmaxTheory theory = softmax_theory(n, v);
  return {expected_max_p(n, v), theory.sum_p2, theory.entropy, theory.jacobian_f2, theory.trace};
}

class HeadMeter {
 public:
  HeadMeter(const SaturationOptions& options, const GivenWeights& weights)
      : options_(options), weights_(weights) {}

  // What the blocks of rows are measured by: row b n + i is query i of batch entry b.
  std::uint64_t rows() const {
    return static_cast<std::uint64_t>(weights_.batch() * weights_.queries());
  }
  void measure(Index head, HeadSample& sample, std::uint64_t first, std::uint64_t last) const {
    RowMeter meter(options_.near_zero);
    std::vector<double> logits;
    for (std::uint64_t row = first; row < last; ++row) {
      const auto at = static_cast<Index>(row);
      weights_.seen_logits(at / weights_.queries(), head, at % weights_.queries(), logits);
      if (logits.empty()) continue;
      meter.measure(logits);
      sample.rows.add(meter, keep());
      sample.zeros += static_cast<double>(weights_.keys() - std::ssize(logits));
      add_row(logits, meter, sample);
    }
  }

  SaturationRow row(Index head, const HeadSample& sample) const {
    SaturationRow row;
    if (weights_.has_head_axis()) row.head = head;
    row.keys = weights_.keys();
    set_measured(options_, sample.rows, row);
    row.empty_rows = static_cast<Index>(rows()) - row.samples;
    row.keys_seen = sample.keys_seen.mean;
    const auto mean_of = [](const Moments& moments) {
      return moments.count > 0 ? std::optional(moments.mean) : std::nullopt;
    };
    row.logit_variance = mean_of(sample.logit_variance);
    row.entropy_share = mean_of(sample.entropy_share);
    row.log_odds_gap = mean_of(sample.log_odds_gap);
    row.critical_variance = sample.critical_variance.mean;
    const auto count = [&](Count what) {
      return sample.rows.counts[static_cast<std::size_t>(what)];
    };
    const double all = static_cast<double>(row.samples) * static_cast<double>(row.keys);
    row.near_zero_share = count(Count::near_zero) / sample.jacobian_entries;
    row.exact_zero_share = sample.zeros / all;
    row.subnormal_share = count(Count::subnormal) / all;
    for_each_main_metric(row, [&](auto& columns, Metric metric) {
      const auto i = static_cast<std::size_t>(metric);
      columns.theory = sample.theory[i].mean;
      const Estimate estimate = over_entries(head, sample.rows.kept[i], columns.mean);
      columns.ci_low = estimate.low;
      columns.ci_high = estimate.high;
    });
    return row;
  }

 private:
  // The rows' own values tell those of each batch entry.
  bool keep() const { return !options_.quantiles.empty() || weights_.batch() > 1; }

  static void add_row(const std::vector<double>& logits, const RowMeter& meter,
                      HeadSample& sample) {
    const auto n = static_cast<std::uint64_t>(logits.size());
    const double critical = critical_variance(n);
    const std::optional<double> v = moments_of(logits).variance();
    const MainMetrics theory = theory_of(n, v.value_or(0));
    for (std::size_t i = 0; i < kMainMetrics; ++i) sample.theory[i].add(theory[i]);
    sample.keys_seen.add(static_cast<double>(n));
    sample.critical_variance.add(critical);
    sample.jacobian_entries += static_cast<double>(n) * static_cast<double>(n);
    if (!v) return;
    sample.logit_variance.add(*v);
    sample.entropy_share.add(meter[Metric::entropy] / (critical / 2));
    sample.log_odds_gap.add(meter[Metric::log_odds_gap]);
  }

  // The mean over all rows is the ratio of two sums over entries, of values and of rows; linear in
  // both around it, each entry adds what its own rows stand off the mean.
  Estimate over_entries(Index head, const std::vector<double>& values, double mean) const {
    Moments entries;
    const auto all = static_cast<double>(values.size());
    Index present = 0;
    for (Index b = 0; b < weights_.batch(); ++b) present += weights_.seen_rows(b, head) > 0 ? 1 : 0;
    std::size_t at = 0;
    for (Index b = 0; b < weights_.batch() && !values.empty(); ++b) {
      const auto rows = static_cast<std::size_t>(weights_.seen_rows(b, head));
      double off = 0;
      for (std::size_t i = at; i < at + rows; ++i) off += values[i] - mean;
      at += rows;
      if (rows > 0) entries.add(mean + off * static_cast<double>(present) / all);
    }
    return mean_estimate(entries, options_.sweep.confidence);
  }

  const SaturationOptions& options_;
  const GivenWeights& weights_;
};

// Everything but how given weights are read, measured and told is of scores that are drawn.
void require_given_only(const SaturationOptions& options) {
  constexpr std::array<std::string_view, 5> kUsed = {"weights", "quantiles", "near_zero",
                                                     "confidence", "threads"};
  const auto others = [&](SaturationOptions& of) {
    std::vector<OptionRef> list = options_of(of);
    std::erase_if(list, [&](const OptionRef& option) {
      return std::find(kUsed.begin(), kUsed.end(), option.name) != kUsed.end();
    });
    return list;
  };
  SaturationOptions given = options, usual;
  const std::vector<OptionRef> refs = others(given), defaults = others(usual);
  if (const OptionRef* option = first_changed(refs, defaults)) {
    throw InputError("", option->name, value_of(*option),
                     "is for scores that are drawn; here weights are given");
  }
}

// "0.41 nats where random scores of the same variance have 0.87"
std::string described(const SaturationRow& row) {
  return fmt::format("{:.3g} nats where random scores of the same variance have {:.3g}",
                     row.entropy.mean, row.entropy.theory.value_or(0));
}

std::string finding_of(const std::vector<SaturationRow>& rows) {
  if (rows.empty()) return "";
  const SaturationRow& first = rows[0];
  if (rows.size() == 1) {
    return fmt::format("Over {} keys the rows have {:.4g} effective keys and the entropy {}.",
                       first.keys, first.effective_keys, described(first));
  }
  const auto [low, high] = std::minmax_element(rows.begin(), rows.end(),
                                               [](const SaturationRow& a, const SaturationRow& b) {
                                                 return a.entropy.mean < b.entropy.mean;
                                               });
  const auto sharper = std::count_if(rows.begin(), rows.end(), [](const SaturationRow& row) {
    return row.entropy.mean < (1 - kClearlyLess) * row.entropy.theory.value_or(0);
  });
  return fmt::format(
      "Of {} heads over {} keys the most saturated is head {}, with {:.4g} effective keys and the "
      "entropy {}; the least is head {}, with {:.4g} and {}; {} of {} have less entropy by "
      "{:.0f}% or more than random scores of their variance.",
      rows.size(), first.keys, low->head.value_or(0), low->effective_keys, described(*low),
      high->head.value_or(0), high->effective_keys, described(*high), sharper, rows.size(),
      100 * kClearlyLess);
}

// Whether some head has an interval, and of what.
std::string interval_note(const GivenWeights& weights) {
  if (weights.batch() > 1) {
    return fmt::format(
        "a row of the table is over {} batch entries, which are taken to be independent: the rows "
        "of one entry share its keys, so that intervals are over entries",
        weights.batch());
  }
  return "there are no intervals: the rows of a head share its keys and are not independent "
         "(several batch entries would be)";
}

}  // namespace

SaturationResult head_saturation(const SaturationOptions& options, const Watch& watch) {
  require_given_only(options);
  if (watch.parts != nullptr) {
    throw InputError("", "weights", options.weights.path, "are measured whole, not in parts");
  }
  SaturationResult result;
  const GivenWeights weights(options.weights, result.notes);
  result.notes.push_back(interval_note(weights));
  const HeadMeter meter(options, weights);
  const std::uint64_t blocks = block_count(meter.rows());
  for (Index head = 0; head < weights.heads(); ++head) {
    RunControl control{watch.cancel, {}};
    if (watch.progress) {
      control.progress = [&](std::uint64_t done, std::uint64_t all) {
        const double share = static_cast<double>(done) / static_cast<double>(all);
        watch.progress((static_cast<double>(head) + share) / static_cast<double>(weights.heads()));
      };
    }
    const auto work = [&](HeadSample& sample, std::uint64_t first, std::uint64_t last) {
      meter.measure(head, sample, first, last);
    };
    const auto tree = run_blocks({0, blocks}, meter.rows(), options.sweep.run.threads, HeadSample(),
                                 work, control);
    if (!tree.covers(blocks)) {
      result.status.interrupted = true;
      break;
    }
    result.rows.push_back(meter.row(head, tree.result(HeadSample())));
    if (watch.row) watch.row(result_of(result.rows.back()));
  }
  result.finding = finding_of(result.rows);
  return result;
}

}  // namespace attnlab
