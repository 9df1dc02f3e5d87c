#include "attnlab/experiments/row_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "attnlab/attention/softmax.h"
#include "attnlab/experiments/state_values.h"

namespace attnlab {
namespace {

// exp of a float32 below this is 0 or subnormal, or soon will be once divided by the sum.
constexpr double kFloatTail = -80;

std::size_t index(Metric metric) { return static_cast<std::size_t>(metric); }
std::size_t index(Count count) { return static_cast<std::size_t>(count); }

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void RowMeter::measure(std::span<const double> logits) {
  row_.set_logits(logits);
  const SoftmaxMetrics metrics = softmax_metrics(row_);
  metrics_[index(Metric::max_p)] = metrics.max_weight;
  metrics_[index(Metric::sum_p2)] = metrics.sum_squares;
  metrics_[index(Metric::entropy)] = metrics.entropy;
  metrics_[index(Metric::jacobian_f2)] = metrics.frobenius_squared;
  metrics_[index(Metric::trace)] = metrics.trace;
  metrics_[index(Metric::effective_keys)] = 1 / metrics.sum_squares;
  metrics_[index(Metric::perplexity)] = std::exp(metrics.entropy);
  metrics_[index(Metric::lambda_max)] = softmax_largest_eigenvalue(row_);
  double second = -std::numeric_limits<double>::infinity();
  const auto ratios = row_.log_ratios();
  const auto m = static_cast<std::size_t>(row_.argmax());
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (i != m) second = std::max(second, ratios[i]);
  }
  metrics_[index(Metric::log_odds_gap)] = logits.size() > 1 ? -second : 0;
  jacobian_f_ = metrics.frobenius;
  count(logits);
}

void RowMeter::count(std::span<const double> logits) {
  counts_.fill(0);
  const auto set = [&](Count count, double value) { counts_[index(count)] = value; };
  // 1 - p is kept where p itself would be rounded to 1.
  set(Count::max_above_9, row_.rest() < 0.1 ? 1 : 0);
  set(Count::max_above_99, row_.rest() < 0.01 ? 1 : 0);
  set(Count::max_above_999, row_.rest() < 0.001 ? 1 : 0);
  set(Count::near_zero, near_zero_entries());
  const auto total = static_cast<float>(std::exp(row_.log_sum()));
  set(Count::max_one, 1 / total == 1 ? 1 : 0);
  double zeros = 0, subnormals = 0;
  for (const double ratio : row_.log_ratios()) {
    if (ratio >= kFloatTail) continue;
    const float weight = std::exp(static_cast<float>(ratio)) / total;
    if (weight == 0) {
      ++zeros;
    } else if (weight < std::numeric_limits<float>::min()) {
      ++subnormals;
    }
  }
  set(Count::exact_zero, zeros);
  set(Count::subnormal, subnormals);
  set(Count::naive_nan, naive_is_nan(logits) ? 1 : 0);
}

// |J_ij| = p_i p_j beside the diagonal and p_i (1 - p_i) on it. Rounded products are in the order
// of their factors. So a weight whose product with the largest is below the bound has only such
// products, one whose product with the smallest is not below has none, and of those between, in
// order, the products below end at a place that only moves one way.
double RowMeter::near_zero_entries() {
  const auto weights = row_.weights();
  const auto n = static_cast<double>(weights.size());
  const double bound = near_zero_ / (n * n);
  const auto m = static_cast<std::size_t>(row_.argmax());
  const double largest = weights[m], smallest = *std::min_element(weights.begin(), weights.end());
  double entries = 0, small = 0;
  between_.clear();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double diagonal = weights[i] * (i == m ? row_.rest() : 1 - weights[i]);
    if (diagonal < bound) ++entries;
    if (weights[i] * largest < bound) {
      ++small;
    } else if (weights[i] * smallest < bound) {
      between_.push_back(weights[i]);
    }
  }
  // Row and column of each small weight, less what both have and the diagonal.
  entries += small * (2 * n - small - 1);
  std::sort(between_.begin(), between_.end(), std::greater<>());
  std::size_t from = between_.size();  // products of p_i with p_from and after it are below
  for (std::size_t i = 0; i < between_.size(); ++i) {
    while (from > 0 && between_[i] * between_[from - 1] < bound) --from;
    entries += static_cast<double>(between_.size() - from);
    // The loop counts p_i p_i, which is not on the diagonal.
    if (i >= from) --entries;
  }
  return entries;
}

bool RowMeter::naive_is_nan(std::span<const double> logits) {
  const double largest = logits[static_cast<std::size_t>(row_.argmax())];
  if (std::abs(largest) < -kFloatTail) return false;
  single_.assign(logits.begin(), logits.end());
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
