#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "attnlab/experiments/variance.h"
#include "attnlab/stats/distributions.h"

namespace attnlab {

inline VarianceOptions sized(std::vector<Index> d_k, Index samples) {
  VarianceOptions options;
  options.d_k = std::move(d_k);
  options.sweep.samples = samples;
  return options;
}

// The score of pair `trial` of point `point`, from the same draws in a plain loop.
inline double plain_score(const VarianceOptions& options, std::size_t point, std::uint64_t trial,
                          std::vector<double>* products = nullptr) {
  const auto d = static_cast<std::size_t>(options.d_k[point]);
  std::vector<float> q(d), k(d);
  const EntryLaw q_law = entry_law(options.entries, options.dependence.mean_q);
  const EntryLaw k_law = entry_law(options.entries, options.dependence.mean_k);
  const std::uint64_t seed = options.sweep.run.seed;
  fill_entries(q, q_law, seed, stream_at(Stream::sample_q, point), trial);
  fill_entries(k, k_law, seed, stream_at(Stream::sample_k, point), trial);
  double score = 0;
  for (std::size_t i = 0; i < d; ++i) {
    const double product = static_cast<double>(q[i]) * static_cast<double>(k[i]);
    if (products != nullptr) products->push_back(product);
    score += product;
  }
  return score;
}

inline std::vector<double> plain_scores(const VarianceOptions& options, std::size_t point) {
  std::vector<double> scores;
  for (Index i = 0; i < options.sweep.samples; ++i) {
    scores.push_back(plain_score(options, point, static_cast<std::uint64_t>(i)));
  }
  return scores;
}

// Sum of (x - mean)^power / divisor in two passes.
inline double central(const std::vector<double>& values, int power, double divisor) {
  long double mean = 0, sum = 0;
  for (const double x : values) mean += static_cast<long double>(x);
  mean /= static_cast<long double>(values.size());
  for (const double x : values) sum += std::pow(static_cast<long double>(x) - mean, power);
  return static_cast<double>(sum / static_cast<long double>(divisor));
}

inline double plain_variance(const std::vector<double>& values) {
  return central(values, 2, static_cast<double>(values.size()) - 1);
}

inline double plain_quantile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const double h = p * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(h);
  const double part = h - static_cast<double>(low);
  return values[low] + (part > 0 ? part * (values[low + 1] - values[low]) : 0);
}

}  // namespace attnlab
