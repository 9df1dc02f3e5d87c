#include "attnlab/experiments/row_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attnlab/attention/softmax.h"
#include "attnlab/experiments/state_values.h"

namespace attnlab {
namespace {

// exp of a float32 below this is 0 or subnormal, or soon will be once divided by the sum.
constexpr double kFloatTail = -80;

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void RowMeter::measure(std::span<const double> scores, double factor) {
  row_.set_logits(scores, factor);
  const SoftmaxMetrics metrics = row_.metrics();
  const auto set = [&](Metric metric, double value) {
    metrics_[static_cast<std::size_t>(metric)] = value;
  };
  set(Metric::max_p, metrics.max_weight);
  set(Metric::sum_p2, metrics.sum_squares);
  set(Metric::entropy, metrics.entropy);
  set(Metric::jacobian_f2, metrics.frobenius_squared);
  set(Metric::trace, metrics.trace);
  set(Metric::effective_keys, 1 / metrics.sum_squares);
  set(Metric::perplexity, std::exp(metrics.entropy));
  set(Metric::lambda_max, row_.largest_eigenvalue());
  set(Metric::log_odds_gap, row_.gap());
  jacobian_f_ = metrics.frobenius;
  count(scores, factor);
}

void RowMeter::count(std::span<const double> scores, double factor) {
  counts_.fill(0);
  // 1 - p is kept where p itself would be rounded to 1.
  at(Count::max_above_9) = row_.rest() < 0.1 ? 1 : 0;
  at(Count::max_above_99) = row_.rest() < 0.01 ? 1 : 0;
  at(Count::max_above_999) = row_.rest() < 0.001 ? 1 : 0;
  at(Count::near_zero) = near_zero_entries(static_cast<double>(scores.size()));
  at(Count::max_one) = 1 / static_cast<float>(row_.total()) == 1 ? 1 : 0;
  const LogitRange& range = row_.range();
  if (!range.finite || range.lowest - range.highest < kFloatTail) count_in_float(scores, factor);
  at(Count::naive_nan) = naive_is_nan(scores, factor) ? 1 : 0;
}

void RowMeter::count_in_float(std::span<const double> scores, double factor) {
  const auto total = static_cast<float>(row_.total());
  for (const double score : scores) {
    const double ratio = factor * score - row_.range().highest;
    if (ratio >= kFloatTail) continue;
    const float weight = std::exp(static_cast<float>(ratio)) / total;
    if (weight == 0) {
      ++at(Count::exact_zero);
    } else if (weight < std::numeric_limits<float>::min()) {
      ++at(Count::subnormal);
    }
  }
}

// |J_ij| = p_i p_j beside the diagonal and p_i (1 - p_i) on it, in units of the largest weight
// squared rho_i rho_j, 1 of them 1, and rho_i (sum rho - rho_i). Rounded products are in the order
// of their factors. So a ratio below the bound has only products below it, since its product with 1
// is; one whose product with the smallest is not below has none, not on the diagonal either; and
// those between are counted pair by pair.
double RowMeter::near_zero_entries(double n) {
  if (row_.max_weight() == 0) return n * n;
  const double total = row_.total();
  const double bound = near_zero_ * (total / n) * (total / n);
  std::size_t diagonal = row_.rest() * total < bound ? 1 : 0;  // of the largest
  // No ratio is less; with what a rounding makes of it.
  constexpr double kLess = 1 - 0x1p-40;
  const double smallest = std::exp(row_.range().lowest - row_.range().highest) * kLess;
  const double limit = bound / (smallest * kLess);
  std::span<double> others;
  if (limit >= smallest) others = row_.small_ratios(limit, small_);
  std::size_t between = 0;
  for (const double ratio : others) {
    diagonal += ratio * (total - ratio) < bound ? 1 : 0;
    // Written whether it stays or not: which do is not to be foreseen.
    others[between] = ratio;
    between += ratio < bound ? 0 : 1;
  }
  const auto small = static_cast<double>(others.size() - between);
  // Row and column of each small weight, less what both have and the diagonal.
  const double beside = small * (2 * n - small - 1);
  return static_cast<double>(diagonal) + beside + products_.below(others.first(between), bound);
}

bool RowMeter::naive_is_nan(std::span<const double> scores, double factor) {
  if (std::abs(row_.range().highest) < -kFloatTail && row_.range().finite) return false;
  single_.resize(scores.size());
  std::transform(scores.begin(), scores.end(), single_.begin(),
                 [factor](double score) { return static_cast<float>(factor * score); });
  naive_softmax_row<float>(single_, single_);
  return std::any_of(single_.begin(), single_.end(), [](float p) { return std::isnan(p); });
}

void RowSample::add(const RowMeter& meter, bool keep) {
  for (std::size_t i = 0; i < kMetrics; ++i) metrics[i].add(meter.metrics()[i]);
  for (std::size_t i = 0; i < kCounts; ++i) counts[i] += meter.counts()[i];
  jacobian_f.push_back(meter.jacobian_f());
  if (!keep) return;
  for (std::size_t i = 0; i < kMainMetrics; ++i) kept[i].push_back(meter.metrics()[i]);
}

void RowSample::merge(const RowSample& other) {
  for (std::size_t i = 0; i < kMetrics; ++i) metrics[i].merge(other.metrics[i]);
  for (std::size_t i = 0; i < kCounts; ++i) counts[i] += other.counts[i];
  append(jacobian_f, other.jacobian_f);
  for (std::size_t i = 0; i < kMainMetrics; ++i) {
    block_means[i].merge(other.block_means[i]);
    append(kept[i], other.kept[i]);
  }
}

void SaturationState::merge(const SaturationState& other) {
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].merge(other.samples[i]);
}

std::vector<double> SaturationState::values() const {
  StateWriter writer;
  for (const RowSample& sample : samples) {
    for (const Moments& moments : sample.metrics) writer.add(moments.values());
    writer.add(sample.counts);
    for (const Moments& moments : sample.block_means) writer.add(moments.values());
    writer.add_list(sample.jacobian_f);
    for (const std::vector<double>& kept : sample.kept) writer.add_list(kept);
  }
  return writer.take();
}

void SaturationState::set_values(std::span<const double> values) {
  StateReader reader(values);
  for (RowSample& sample : samples) {
    for (Moments& moments : sample.metrics) {
      moments = Moments::from_values(reader.take(Moments::kValues));
    }
    const auto counts = reader.take(kCounts);
    std::copy(counts.begin(), counts.end(), sample.counts.begin());
    for (Moments& moments : sample.block_means) {
      moments = Moments::from_values(reader.take(Moments::kValues));
    }
    sample.jacobian_f = reader.take_list();
    for (std::vector<double>& kept : sample.kept) kept = reader.take_list();
  }
  reader.finish();
}

}  // namespace attnlab
