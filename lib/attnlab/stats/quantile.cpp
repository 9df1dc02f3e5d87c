#include "attnlab/stats/quantile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

bool holds_nan(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
}

// What stands `part` of the way from one order statistic to the next.
double between(double low, double high, double part) {
  // Equal neighbours may both be infinite, where the difference is not defined.
  if (low == high || part == 0) return low;
  return std::lerp(low, high, part);
}

}  // namespace

SortedSample::SortedSample(std::vector<double> values) : values_(std::move(values)) {
  has_nan_ = holds_nan(values_);
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
  return between(values_[below], values_[std::min(below + 1, values_.size() - 1)],
                 position - static_cast<double>(below));
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
  return median_of(std::move(distances));
}

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  if (holds_nan(values)) return std::numeric_limits<double>::quiet_NaN();
  const auto low = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), low, values.end());
  if (values.size() % 2 == 1) return *low;
  return between(*low, *std::min_element(low + 1, values.end()), 0.5);
}

}  // namespace attnlab
