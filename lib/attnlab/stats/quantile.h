#pragma once

#include <optional>
#include <span>
#include <vector>

namespace attnlab {

// Quantiles by linear interpolation of the order statistics: with h = (n - 1) p, between the values
// of rank floor(h) and floor(h) + 1 counted from 0. It is type 7 of Hyndman and Fan, "Sample
// quantiles in statistical packages" (1996), the default of R and NumPy.
inline constexpr const char* kQuantileMethod = "hyndman_fan_7";

// The values in ascending order, to ask for several quantiles. A NaN among them leaves none
// defined: every quantile is NaN.
class SortedSample {
 public:
  explicit SortedSample(std::vector<double> values);

  // The p-quantile, 0 <= p <= 1; nothing for an empty sample. Throws InputError for another p.
  std::optional<double> quantile(double p) const;
  std::optional<double> median() const { return quantile(0.5); }
  // quantile(.75) - quantile(.25).
  std::optional<double> interquartile_range() const;
  // The median of |x - median|, unscaled (of N(0, s^2) it is .6745 s).
  std::optional<double> median_absolute_deviation() const;

  std::span<const double> values() const { return values_; }

 private:
  std::vector<double> values_;
  bool has_nan_ = false;
};

// SortedSample(values).median(), without sorting all of them.
std::optional<double> median_of(std::vector<double> values);

}  // namespace attnlab
