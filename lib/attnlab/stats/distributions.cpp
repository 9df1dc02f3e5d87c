#include "attnlab/stats/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "attnlab/core/error.h"
#include "attnlab/stats/entry_transform.h"
#include "attnlab/stats/entry_trials.h"
#include "attnlab/stats/exact_math.h"

namespace attnlab {
namespace {

void require(bool holds, const char* field, double value, const char* rule) {
  if (!holds) throw InputError("", field, fmt::format("{}", value), rule);
}

float student_t(const PhiloxCounter& bits, double nu) {
  const double log_u = log_uniform64(static_cast<std::uint64_t>(bits[1]) << 32 | bits[0]);
  const double radius = std::sqrt(nu * exp_minus_one(-2 * log_u / nu));
  return static_cast<float>(radius) * cosine_of_turn(bits[2]);
}

void fill_student_t(std::span<float> out, double nu, std::uint64_t seed, Stream stream,
                    std::uint64_t trial) {
  if (out.size() > std::uint64_t{1} << 32) {
    throw InputError("", "", std::to_string(out.size()),
                     "at most 2^32 values can be drawn at once, one a block");
  }
  const auto standard = static_cast<float>(nu > 2 ? std::sqrt((nu - 2) / nu) : 1.0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const PhiloxCounter bits = random_block(seed, stream, trial, static_cast<std::uint32_t>(i));
    out[i] = standard * student_t(bits, nu);
  }
}

}  // namespace

// sqrt(3) (2u - 1): bits with the top bit flipped, read as a signed number, are 2^31 (2u - 1) -
// 1/2.
float uniform_entry(std::uint32_t bits) {
  const auto centred = static_cast<std::int32_t>(bits ^ 0x80000000u);
  return std::fma(static_cast<float>(centred), kSqrt3 * 0x1p-31f, kSqrt3 * 0x1p-32f);
}

float rademacher_entry(std::uint32_t bits) {
  return std::bit_cast<float>(0x3f800000u | (~bits & 0x80000000u));
}

float laplace_entry(std::uint32_t bits) {
  // The lowest bit is the sign; set, it leaves the magnitude the same for both.
  const float magnitude = -kSqrtHalf * log_uniform_of(bits | 1);
  return (bits & 1) != 0 ? -magnitude : magnitude;
}

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
  if (law.distribution == Distribution::student_t) {
    return fill_student_t(out, law.nu, seed, stream, trial);
  }
  fill_standard_trials(out, out.size(), law, seed, stream, trial);
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
