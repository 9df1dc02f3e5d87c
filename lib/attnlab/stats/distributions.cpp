#include "attnlab/stats/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "attnlab/core/error.h"
#include "attnlab/stats/exact_math.h"

namespace attnlab {
namespace {

void require(bool holds, const char* field, double value, const char* rule) {
  if (!holds) throw InputError("", field, fmt::format("{}", value), rule);
}

// sqrt(3) (2u - 1): bits with the top bit flipped, read as a signed number, are 2^31 (2u - 1) -
// 1/2.
float uniform(std::uint32_t bits) {
  const auto centred = static_cast<std::int32_t>(bits ^ 0x80000000u);
  return std::fma(static_cast<float>(centred), 0x1.bb67aep-31f, 0x1.bb67aep-32f);
}

float rademacher(std::uint32_t bits) {
  return std::bit_cast<float>(0x3f800000u | (~bits & 0x80000000u));
}

float laplace(std::uint32_t bits) {
  // The lowest bit is the sign; set, it leaves the magnitude the same for both.
  const float magnitude = -0x1.6a09e6p-1f * log_uniform_of(bits | 1);
  return (bits & 1) != 0 ? -magnitude : magnitude;
}

float student_t(const PhiloxCounter& bits, double nu) {
  const double log_u = log_uniform64(static_cast<std::uint64_t>(bits[1]) << 32 | bits[0]);
  const double radius = std::sqrt(nu * exp_minus_one(-2 * log_u / nu));
  return static_cast<float>(radius) * cosine_of_turn(bits[2]);
}

void check_count(std::size_t count, std::uint64_t most) {
  if (count > most) {
    throw InputError("", "", std::to_string(count),
                     "at most " + std::to_string(most) + " values can be drawn at once");
  }
}

template <class Transform>
void fill_by_word(std::span<float> out, std::uint64_t seed, Stream stream, std::uint64_t trial,
                  const Transform& transform) {
  check_count(out.size(), std::uint64_t{4} << 32);
  for (std::size_t first = 0; first < out.size(); first += 4) {
    const PhiloxCounter bits =
        random_block(seed, stream, trial, static_cast<std::uint32_t>(first / 4));
    const std::size_t count = std::min<std::size_t>(4, out.size() - first);
    for (std::size_t i = 0; i < count; ++i) out[first + i] = transform(bits[i]);
  }
}

void fill_student_t(std::span<float> out, double nu, std::uint64_t seed, Stream stream,
                    std::uint64_t trial) {
  check_count(out.size(), std::uint64_t{1} << 32);
  const auto standard = static_cast<float>(nu > 2 ? std::sqrt((nu - 2) / nu) : 1.0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const PhiloxCounter bits = random_block(seed, stream, trial, static_cast<std::uint32_t>(i));
    out[i] = standard * student_t(bits, nu);
  }
}

}  // namespace

void EntryLaw::check() const {
  require(sigma > 0 && std::isfinite(sigma), "sigma", sigma, "must be positive and finite");
  require(std::isfinite(mean), "mean", mean, "must be finite");
  if (distribution == Distribution::student_t) {
    require(nu >= 1 && nu <= 1e15, "nu", nu, "must be from 1 to 1e15");
  }
}

std::optional<double> EntryLaw::variance() const {
  if (distribution == Distribution::student_t && nu <= 2) return std::nullopt;
  return sigma * sigma;
}

std::optional<double> EntryLaw::kurtosis() const {
  switch (distribution) {
    case Distribution::normal:
      return 3;
    case Distribution::uniform:
      return 1.8;
    case Distribution::rademacher:
      return 1;
    case Distribution::laplace:
      return 6;
    case Distribution::student_t:
      break;
  }
  if (nu <= 4) return std::nullopt;
  return 3 + 6 / (nu - 4);
}

void fill_standard(std::span<float> out, const EntryLaw& law, std::uint64_t seed, Stream stream,
                   std::uint64_t trial) {
  switch (law.distribution) {
    case Distribution::normal:
      return fill_normal(out, seed, stream, trial);
    case Distribution::uniform:
      return fill_by_word(out, seed, stream, trial, uniform);
    case Distribution::rademacher:
      return fill_by_word(out, seed, stream, trial, rademacher);
    case Distribution::laplace:
      return fill_by_word(out, seed, stream, trial, laplace);
    case Distribution::student_t:
      return fill_student_t(out, law.nu, seed, stream, trial);
  }
}

void apply_scale(std::span<float> values, const EntryLaw& law) {
  const auto sigma = static_cast<float>(law.sigma), mean = static_cast<float>(law.mean);
  if (sigma == 1 && mean == 0) return;
  for (float& x : values) x = std::fma(sigma, x, mean);
}

void fill_entries(std::span<float> out, const EntryLaw& law, std::uint64_t seed, Stream stream,
                  std::uint64_t trial) {
  fill_standard(out, law, seed, stream, trial);
  apply_scale(out, law);
}

void equicorrelate(std::span<float> entries, double rho) {
  const auto d = static_cast<double>(entries.size());
  require(rho <= 1 && 1 + (d - 1) * rho >= -1e-12, "rho", rho, "must be from -1/(d_k - 1) to 1");
  if (rho == 0 || entries.size() < 2) return;
  double mean = 0;
  for (const float x : entries) mean += x;
  mean /= d;
  const double apart = std::sqrt(1 - rho);
  const double along = std::sqrt(std::max(0.0, 1 + (d - 1) * rho));
  const double common = (along - apart) * mean;
  for (float& x : entries) x = static_cast<float>(std::fma(apart, static_cast<double>(x), common));
}

void correlate_with(std::span<float> k, std::span<const float> q, double rho) {
  require(rho >= -1 && rho <= 1, "rho", rho, "must be from -1 to 1");
  if (rho == 0) return;
  const double rest = std::sqrt(std::fma(-rho, rho, 1.0));
  for (std::size_t i = 0; i < k.size(); ++i) {
    const double own = rest * static_cast<double>(k[i]);
    k[i] = static_cast<float>(std::fma(rho, static_cast<double>(q[i]), own));
  }
}

}  // namespace attnlab
