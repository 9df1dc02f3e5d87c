#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attnlab/core/tensor.h"
#include "attnlab/stats/moments.h"

namespace attnlab {

// The mean vector and covariance matrix of vectors of d entries, updated and merged as Moments are
// (Pebay, SAND2008-6212, equation 3.12). Memory and time of an update are d^2.
class Covariance {
 public:
  // Throws InputError unless 1 <= d <= 4096 (128 MiB a matrix).
  explicit Covariance(Index d);

  void add(std::span<const double> vector);
  void merge(const Covariance& other);

  std::uint64_t count() const { return count_; }
  const std::vector<double>& mean() const { return mean_; }
  // Entry (i, j): sum (x_i - mean_i)(x_j - mean_j) / (count - 1), exactly symmetric; nothing for
  // fewer than two vectors.
  std::optional<Matrix<double>> matrix() const;

  // The exact state as numbers, [count, d, mean.., comoments of rows i <= j..], and back. Throws
  // InputError when they are no such state.
  std::vector<double> values() const;
  static Covariance from_values(std::span<const double> values);

 private:
  std::uint64_t count_ = 0;
  std::vector<double> mean_;
  std::vector<double> comoments_;  // upper triangle, row by row
};

// How the variance of a sum s = p_1 + .. + p_d is made up: the variance of each component and of
// the sum, without the d^2 covariances. Var s = sum Var p_i + (covariance term) holds to rounding,
// as 1' S 1 = S^2_s for the full matrix S of the same sample.
class ComponentMoments {
 public:
  explicit ComponentMoments(Index d);

  void add(std::span<const double> components);
  void merge(const ComponentMoments& other);

  // Moments of the sum.
  const Moments& total() const { return total_; }
  // Sum over components of their variances (n - 1); nothing for fewer than two vectors.
  std::optional<double> variance_sum() const;
  // Var s - sum Var p_i = 2 sum_{i<j} Cov(p_i, p_j).
  std::optional<double> covariance_term() const;

  std::vector<double> values() const;
  static ComponentMoments from_values(std::span<const double> values);

 private:
  Moments total_;
  std::vector<double> mean_, m2_;
};

}  // namespace attnlab
