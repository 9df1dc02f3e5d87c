#include "attnlab/stats/quantile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attnlab/core/error.h"

namespace attnlab {

SortedSample::SortedSample(std::vector<double> values) : values_(std::move(values)) {
  has_nan_ = std::any_of(values_.begin(), values_.end(), [](double x) { return std::isnan(x); });
  if (!has_nan_) std::sort(values_.begin(), values_.end());
}

std::optional<double> SortedSample::quantile(double p) const {
  if (!(p >= 0 && p <= 1)) {
    throw InputError("", "quantile", fmt::format("{}", p), "must be from 0 to 1");
  }
  if (values_.empty()) return std::nullopt;
  if (has_nan_) return std::numeric_limits<double>::quiet_NaN();
  const double position = static_cast<double>(values_.size() - 1) * p;
  const auto below = static_cast<std::size_t>(position);
  const double low = values_[below];
  const double high = values_[std::min(below + 1, values_.size() - 1)];
  // Equal neighbours may both be infinite, where the difference is not defined.
  if (low == high) return low;
  const double part = position - static_cast<double>(below);
  if (part == 0) return low;
  return std::lerp(low, high, part);
}

std::optional<double> SortedSample::interquartile_range() const {
  if (values_.empty()) return std::nullopt;
  return *quantile(0.75) - *quantile(0.25);
}

std::optional<double> SortedSample::median_absolute_deviation() const {
  if (values_.empty()) return std::nullopt;
  const double middle = *median();
  std::vector<double> distances(values_);
  for (double& x : distances) x = std::fabs(x - middle);
  return SortedSample(std::move(distances)).median();
}

}  // namespace attnlab
