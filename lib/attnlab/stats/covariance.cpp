#include "attnlab/stats/covariance.h"

#include <cmath>
#include <string>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

constexpr Index kLargestMatrix = 4096;

std::size_t triangle(std::size_t d) { return d * (d + 1) / 2; }

std::size_t checked_length(Index d, Index most) {
  if (d < 1 || d > most) {
    throw InputError("", "d", std::to_string(d), "must be from 1 to " + std::to_string(most));
  }
  return static_cast<std::size_t>(d);
}

[[noreturn]] void refuse_state(std::size_t count, const char* what) {
  throw InputError("", what, std::to_string(count) + " numbers", "not a saved state");
}

// The whole number a saved state has at `i`, at most `most`.
std::uint64_t saved_count(std::span<const double> values, std::size_t i, double most,
                          const char* what) {
  if (i >= values.size()) refuse_state(values.size(), what);
  const double value = values[i];
  if (!(value >= 0 && value <= most && value == std::floor(value))) {
    refuse_state(values.size(), what);
  }
  return static_cast<std::uint64_t>(value);
}

}  // namespace

Covariance::Covariance(Index d)
    : mean_(checked_length(d, kLargestMatrix)), comoments_(triangle(mean_.size())) {}

void Covariance::add(std::span<const double> vector) {
  eigen_assert(vector.size() == mean_.size());
  const auto before = static_cast<double>(count_);
  ++count_;
  const auto n = static_cast<double>(count_);
  double* row = comoments_.data();
  // (x - old mean)(y - old mean) (n - 1) / n: both factors old keeps the matrix symmetric.
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const double left = (vector[i] - mean_[i]) * (before / n);
    for (std::size_t j = i; j < mean_.size(); ++j) *row++ += left * (vector[j] - mean_[j]);
  }
  for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += (vector[i] - mean_[i]) / n;
}

void Covariance::merge(const Covariance& other) {
  eigen_assert(other.mean_.size() == mean_.size());
  if (other.count_ == 0) return;
  if (count_ == 0) {
    *this = other;
    return;
  }
  const auto a = static_cast<double>(count_);
  const auto b = static_cast<double>(other.count_);
  const double n = a + b;
  std::size_t k = 0;
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const double left = (other.mean_[i] - mean_[i]) * (a * b / n);
    for (std::size_t j = i; j < mean_.size(); ++j, ++k) {
      comoments_[k] += other.comoments_[k] + left * (other.mean_[j] - mean_[j]);
    }
  }
  for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += (other.mean_[i] - mean_[i]) * (b / n);
  count_ += other.count_;
}

std::optional<Matrix<double>> Covariance::matrix() const {
  if (count_ < 2) return std::nullopt;
  const auto d = static_cast<Index>(mean_.size());
  Matrix<double> covariance(d, d);
  const double* comoment = comoments_.data();
  for (Index i = 0; i < d; ++i) {
    for (Index j = i; j < d; ++j) {
      covariance(i, j) = covariance(j, i) = *comoment++ / static_cast<double>(count_ - 1);
    }
  }
  return covariance;
}

std::vector<double> Covariance::values() const {
  std::vector<double> values = {static_cast<double>(count_), static_cast<double>(mean_.size())};
  values.insert(values.end(), mean_.begin(), mean_.end());
  values.insert(values.end(), comoments_.begin(), comoments_.end());
  return values;
}

Covariance Covariance::from_values(std::span<const double> values) {
  const std::uint64_t count = saved_count(values, 0, 0x1p53, "covariance");
  const std::uint64_t d = saved_count(values, 1, kLargestMatrix, "covariance");
  if (d < 1 || values.size() != 2 + d + triangle(d)) refuse_state(values.size(), "covariance");
  Covariance state(static_cast<Index>(d));
  state.count_ = count;
  state.mean_.assign(values.begin() + 2, values.begin() + 2 + static_cast<Index>(d));
  state.comoments_.assign(values.begin() + 2 + static_cast<Index>(d), values.end());
  return state;
}

ComponentMoments::ComponentMoments(Index d)
    : mean_(checked_length(d, Index{1} << 24)), m2_(mean_.size()) {}

void ComponentMoments::add(std::span<const double> components) {
  eigen_assert(components.size() == mean_.size());
  const auto n = static_cast<double>(total_.count + 1);
  double sum = 0;
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const double delta = components[i] - mean_[i];
    mean_[i] += delta / n;
    m2_[i] += delta * (components[i] - mean_[i]);
    sum += components[i];
  }
  total_.add(sum);
}

void ComponentMoments::merge(const ComponentMoments& other) {
  eigen_assert(other.mean_.size() == mean_.size());
  if (other.total_.count == 0) return;
  if (total_.count == 0) {
    *this = other;
    return;
  }
  const auto a = static_cast<double>(total_.count);
  const auto b = static_cast<double>(other.total_.count);
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const double delta = other.mean_[i] - mean_[i];
    m2_[i] += other.m2_[i] + delta * delta * (a * b / (a + b));
    mean_[i] += delta * (b / (a + b));
  }
  total_.merge(other.total_);
}

std::optional<double> ComponentMoments::variance_sum() const {
  if (total_.count < 2) return std::nullopt;
  double sum = 0;
  for (const double m2 : m2_) sum += m2;
  return sum / static_cast<double>(total_.count - 1);
}

std::optional<double> ComponentMoments::covariance_term() const {
  if (total_.count < 2) return std::nullopt;
  return *total_.variance() - *variance_sum();
}

std::vector<double> ComponentMoments::values() const {
  const auto total = total_.values();
  std::vector<double> values(total.begin(), total.end());
  values.insert(values.end(), mean_.begin(), mean_.end());
  values.insert(values.end(), m2_.begin(), m2_.end());
  return values;
}

ComponentMoments ComponentMoments::from_values(std::span<const double> values) {
  constexpr std::size_t kTotal = Moments::kValues;
  if (values.size() < kTotal + 2 || (values.size() - kTotal) % 2 != 0) {
    refuse_state(values.size(), "components");
  }
  const std::size_t d = (values.size() - kTotal) / 2;
  ComponentMoments state(static_cast<Index>(d));
  state.total_ = Moments::from_values(values.first(kTotal));
  for (std::size_t i = 0; i < d; ++i) {
    state.mean_[i] = values[kTotal + i];
    state.m2_[i] = values[kTotal + d + i];
    if (state.m2_[i] < 0) refuse_state(values.size(), "components");
  }
  return state;
}

}  // namespace attnlab
