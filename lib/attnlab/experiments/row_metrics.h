#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attnlab/attention/ratio_row.h"
#include "attnlab/experiments/product_count.h"
#include "attnlab/stats/moments.h"

namespace attnlab {

// What is averaged over rows.
enum class Metric {
  max_p,
  sum_p2,
  entropy,
  jacobian_f2,
  trace,
  effective_keys,
  perplexity,
  lambda_max,
  log_odds_gap,
};
inline constexpr std::size_t kMetrics = 9;
// The first of them have intervals, theory and quantiles.
inline constexpr std::size_t kMainMetrics = 5;

// What is counted over rows.
enum class Count {
  max_above_9,
  max_above_99,
  max_above_999,
  near_zero,   // entries of J
  exact_zero,  // weights
  subnormal,   // weights
  max_one,
  naive_nan,
};
inline constexpr std::size_t kCounts = 8;

// Measures rows of logits, one after the other.
class RowMeter {
 public:
  explicit RowMeter(double near_zero) : near_zero_(near_zero) {}

  // The row of the logits factor * scores.
  void measure(std::span<const double> scores, double factor = 1);

  double operator[](Metric metric) const { return metrics_[static_cast<std::size_t>(metric)]; }
  std::span<const double> metrics() const { return metrics_; }
  double jacobian_f() const { return jacobian_f_; }
  std::span<const double> counts() const { return counts_; }

 private:
  void count(std::span<const double> scores, double factor);
  double near_zero_entries(double n);
  void count_in_float(std::span<const double> scores, double factor);
  bool naive_is_nan(std::span<const double> scores, double factor);
  double& at(Count count) { return counts_[static_cast<std::size_t>(count)]; }

  double near_zero_;
  RatioRow row_;
  std::array<double, kMetrics> metrics_{};
  std::array<double, kCounts> counts_{};
  double jacobian_f_ = 0;
  std::vector<double> small_;
  ProductCount products_;
  std::vector<float> single_;
};

// The rows of one point under one scaling.
struct RowSample {
  std::array<Moments, kMetrics> metrics;
  std::array<double, kCounts> counts{};
  // Means over a block of rows that share their keys; unused for fresh keys.
  std::array<Moments, kMainMetrics> block_means;
  std::vector<double> jacobian_f;                      // of every row
  std::array<std::vector<double>, kMainMetrics> kept;  // of every row, for quantiles

  void add(const RowMeter& meter, bool keep);
  void merge(const RowSample& other);
};

// The state of a point: a sample a scaling.
struct SaturationState {
  std::vector<RowSample> samples;

  void merge(const SaturationState& other);
  std::uint64_t trials() const { return samples[0].jacobian_f.size(); }
  std::vector<double> values() const;
  void set_values(std::span<const double> values);
};

}  // namespace attnlab
