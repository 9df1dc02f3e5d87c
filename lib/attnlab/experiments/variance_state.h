#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attnlab/stats/covariance.h"
#include "attnlab/stats/moments.h"

namespace attnlab {

// What is kept of one kind of score: q.k, or what a scaling that is no factor makes of it.
struct ScoreSample {
  Moments moments;
  std::vector<double> block_mean_squares;  // of blocks of pairs
  std::vector<double> scores;              // where robust figures stand in for an interval

  void merge(const ScoreSample& other);
};

// The state of one point of the variance experiment: a ScoreSample each of q.k and of the scalings
// that are no factor, and the components q_i k_i where they are asked for.
struct VarianceState {
  std::vector<ScoreSample> samples;
  std::optional<ComponentMoments> components;
  std::optional<Covariance> covariance;

  void merge(const VarianceState& other);
  // Pairs, or blocks of pairs.
  std::uint64_t trials() const;
  std::vector<double> values() const;
  // Throws InputError for what is no state of this point.
  void set_values(std::span<const double> values);
};

}  // namespace attnlab
