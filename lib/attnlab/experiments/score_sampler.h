#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attnlab/experiments/variance.h"
#include "attnlab/stats/variance_theory.h"

namespace attnlab {

// Draws the queries and keys of one d_k, each pair a function of the seed, the point and its
// number alone.
class ScoreSampler {
 public:
  // Throws InputError when the options do not fit together or the d_k.
  ScoreSampler(const VarianceOptions& options, Index d_k, Index point);

  Index d_k() const { return d_k_; }
  // Queries and keys [pairs, d_k] of the pairs from number `first` on.
  void draw_pairs(std::uint64_t first, std::span<float> q, std::span<float> k);
  // Queries, or keys, [.., d_k] from number `first` on, for pairs of all with all.
  void draw_queries(std::uint64_t first, std::span<float> q) const;
  void draw_keys(std::uint64_t first, std::span<float> k) const;
  // Numbers drawn for one pair.
  Index entries_a_pair() const;

  // What is known of the unscaled score.
  ScoreTheory theory() const;
  // Of the sum of Var(q_i k_i).
  std::optional<double> component_variance_sum() const;
  // Independent entries of mean 0.
  bool is_plain() const;

 private:
  // Vectors [.., d_k] in standard units, before they are correlated with others and scaled.
  void draw_standard(std::uint64_t first, Stream role, const EntryLaw& law, double rho,
                     std::span<float> vectors) const;
  ScoreLaw score_law(double d) const;
  void draw_token(Stream role, std::uint64_t trial, std::vector<float>& token) const;
  // W_q x and W_k y, drawn from their distribution given the tokens: for fixed x the entries of W x
  // are independent normals of variance |x|^2/D, and W x, W y correlate by the cosine of x and y.
  // No W has to be drawn, and nothing is left out.
  void project(std::uint64_t trial, std::span<float> q, std::span<float> k);

  const VarianceOptions& options_;
  EntryLaw q_law_, k_law_;
  Index d_k_;
  std::uint64_t point_;
  Index d_model_;
  std::vector<float> x_, y_;
};

// Those that contradict each other whatever the d_k. Throws InputError.
void check_score_options(const VarianceOptions& options);

}  // namespace attnlab
