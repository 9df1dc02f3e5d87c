#include "attnlab/stats/moments.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

bool is_count(double value) {
  constexpr double kLargest = 0x1p53;
  return value >= 0 && value <= kLargest && value == std::floor(value);
}

// The smaller (larger) of the two, and NaN if either is.
double smaller(double a, double b) { return b < a || std::isnan(b) ? b : a; }
double larger(double a, double b) { return b > a || std::isnan(b) ? b : a; }

// In this file alone, so that it stands in its callers: a shared library's own functions may be
// replaced by others.
inline void update(Moments& moments, double value) {
  auto& [count, mean, m2, m3, m4, min, max] = moments;
  const auto before = static_cast<double>(count);
  ++count;
  const auto n = static_cast<double>(count);
  const double delta = value - mean;
  const double step = delta / n;
  const double step2 = step * step;
  const double square = delta * step * before;
  mean += step;
  m4 += square * step2 * (n * n - 3 * n + 3) + 6 * step2 * m2 - 4 * step * m3;
  m3 += square * step * (n - 2) - 3 * step * m2;
  m2 += square;
  min = smaller(min, value);
  max = larger(max, value);
}

}  // namespace

void Moments::add(double value) { update(*this, value); }

void Moments::add(std::span<const double> values) {
  // A copy of which no other has the address stays in registers.
  Moments moments = *this;
  for (const double value : values) update(moments, value);
  *this = moments;
}

void Moments::merge(const Moments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const auto a = static_cast<double>(count);
  const auto b = static_cast<double>(other.count);
  const double n = a + b;
  const double delta = other.mean - mean;
  const double step = delta / n;
  const double step2 = step * step;
  const double square = delta * step * a * b;  // delta^2 a b / n
  m4 += other.m4 + square * step2 * (a * a - a * b + b * b) +
        6 * step2 * (a * a * other.m2 + b * b * m2) + 4 * step * (a * other.m3 - b * m3);
  m3 += other.m3 + square * step * (a - b) + 3 * step * (a * other.m2 - b * m2);
  m2 += other.m2 + square;
  mean += step * b;
  count += other.count;
  min = smaller(min, other.min);
  max = larger(max, other.max);
}

std::optional<double> Moments::variance() const {
  if (count < 2) return std::nullopt;
  return m2 / static_cast<double>(count - 1);
}

std::optional<double> Moments::population_variance() const {
  if (count < 1) return std::nullopt;
  return m2 / static_cast<double>(count);
}

std::optional<double> Moments::mean_std_error() const {
  if (count < 2) return std::nullopt;
  return std::sqrt(*variance() / static_cast<double>(count));
}

std::optional<double> Moments::skewness() const {
  if (count < 2 || m2 == 0) return std::nullopt;
  return std::sqrt(static_cast<double>(count) / m2) * m3 / m2;
}

std::optional<double> Moments::excess_kurtosis() const {
  if (count < 2 || m2 == 0) return std::nullopt;
  return static_cast<double>(count) * (m4 / m2) / m2 - 3;
}

std::optional<double> Moments::largest_fourth_power_share() const {
  if (count < 2 || m2 == 0) return std::nullopt;
  const double farthest = larger(max - mean, mean - min);
  return farthest * farthest * (farthest * farthest / m4);
}

std::array<double, Moments::kValues> Moments::values() const {
  return {static_cast<double>(count), mean, m2, m3, m4, min, max};
}

Moments Moments::from_values(std::span<const double> values) {
  const auto refuse = [](const std::string& got, const char* rule) {
    throw InputError("", "moments", got, rule);
  };
  if (values.size() != kValues) {
    refuse(std::to_string(values.size()) + " numbers", "need count, mean, m2, m3, m4, min, max");
  }
  if (!is_count(values[0])) {
    refuse("count " + std::to_string(values[0]), "must be a whole number from 0 to 2^53");
  }
  Moments moments{static_cast<std::uint64_t>(values[0]),
                  values[1],
                  values[2],
                  values[3],
                  values[4],
                  values[5],
                  values[6]};
  if (moments.count == 0 && moments != Moments{}) {
    refuse("sums of no value", "an empty sample has zero sums");
  }
  if (moments.m2 < 0 || moments.m4 < 0) refuse("a negative sum", "sums of even powers are >= 0");
  if (moments.count > 0 && moments.min > moments.max) refuse("min above max", "must be in order");
  return moments;
}

Moments moments_of(std::span<const double> values) {
  Moments moments;
  moments.add(values);
  return moments;
}

}  // namespace attnlab
