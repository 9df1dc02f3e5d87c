#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace attnlab {

// Count, mean and central power sums to the fourth order of a sample, updated one value at a time
// and merged in any grouping (Pebay, "Formulas for robust, one-pass parallel computation of
// covariances and arbitrary-order statistical moments", SAND2008-6212, equations 2.1, 3.1). The
// bits depend on the order of updates and merges, which MergeTree fixes. Nothing is lost to a large
// common offset, as sums of squares would. A NaN among the values makes every figure NaN.
struct Moments {
  std::uint64_t count = 0;
  double mean = 0;
  double m2 = 0, m3 = 0, m4 = 0;  // sums of (x - mean)^2, ^3, ^4
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  void add(double value);
  // One after the other.
  void add(std::span<const double> values);
  // As if the values of `other` had been added after this one's. Merging with an empty sample gives
  // the other's bits.
  void merge(const Moments& other);

  // m2 / (count - 1); nothing for fewer than two values.
  std::optional<double> variance() const;
  // m2 / count; nothing for no value.
  std::optional<double> population_variance() const;
  // Square root of variance() / count, the standard error of the mean.
  std::optional<double> mean_std_error() const;
  // sqrt(count) m3 / m2^1.5 and count m4 / m2^2 - 3 (the plug-in g1 and g2); nothing when all
  // values are equal or there are fewer than two.
  std::optional<double> skewness() const;
  std::optional<double> excess_kurtosis() const;
  // max c^4 / sum c^4 with c = x - mean: how much of the fourth moment is one value. It tends to 0
  // where the fourth moment is finite; above 0.1 at 10^5 values or more is a sign that it is not.
  // Nothing where the kurtosis is nothing.
  std::optional<double> largest_fourth_power_share() const;

  // The exact state as numbers, and back; the count is exact to 2^53. Throws InputError when there
  // are not kValues of them or they cannot be a sample's: count no whole number, sums of even
  // powers negative, min above max.
  static constexpr std::size_t kValues = 7;
  std::array<double, kValues> values() const;
  static Moments from_values(std::span<const double> values);

  friend bool operator==(const Moments&, const Moments&) = default;
};

// The moments of the values in their order.
Moments moments_of(std::span<const double> values);

}  // namespace attnlab
