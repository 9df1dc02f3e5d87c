#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "attnlab/core/field.h"
#include "attnlab/core/random.h"

namespace attnlab {

enum class Distribution { normal, uniform, rademacher, laplace, student_t };

template <>
inline constexpr std::array<std::string_view, 5> kChoiceNames<Distribution> = {
    "normal", "uniform", "rademacher", "laplace", "student_t"};

// How the entries of queries and keys are distributed: mean + sigma times a standard variable that
// is symmetric about 0 and has variance 1, so that sigma is the standard deviation of an entry. For
// Student's t that is t sqrt((nu - 2) / nu) while nu > 2. With nu <= 2 there is no variance to
// standardise: the standard variable is t itself and sigma only its scale.
struct EntryLaw {
  Distribution distribution = Distribution::normal;
  double nu = 5;  // degrees of freedom, of student_t only
  double sigma = 1;
  double mean = 0;

  // Throws InputError unless sigma is > 0 and finite, mean finite, and 1 <= nu <= 10^15 (of
  // student_t).
  void check() const;

  // sigma^2; nothing for student_t with nu <= 2.
  std::optional<double> variance() const;
  // E (x - mean)^4 / sigma^4: normal 3, uniform 1.8, Rademacher 1, Laplace 6, Student's t
  // 3 + 6/(nu - 4); nothing where it is infinite (nu <= 4).
  std::optional<double> kurtosis() const;
};

// Standard variables (mean 0, sigma 1), a pure function of seed, stream, trial and index: no state
// and no rejection. Like the normals of core they use only integers, conversions, +, -, *, /, fused
// multiply-adds, square roots and polynomials, so that the bits are the same everywhere.
//   normal      fill_normal
//   uniform     sqrt(3) (2u - 1), u = (bits + 1/2) / 2^32
//   rademacher  the sign of the word's top bit
//   laplace     -ln(u) / sqrt(2) with u of the upper 31 bits, and the sign of the lowest
//   student_t   sqrt(nu (u^{-2/nu} - 1)) cos(2 pi w) (Bailey, "Polar generation of random variates
//               with the t-distribution", 1994, in the trigonometric form), u of 64 bits, so that
//               the tail goes to u = 2^-65
// Element i comes from word i % 4 of block i / 4 of the trial, that of student_t from the first
// three words of block i. Each is within 4 units in the last place of the exact transform. Throws
// InputError when there are more elements than a trial has.
void fill_standard(std::span<float> out, const EntryLaw& law, std::uint64_t seed, Stream stream,
                   std::uint64_t trial);

// x -> mean + sigma x.
void apply_scale(std::span<float> values, const EntryLaw& law);

// Entries of the law: fill_standard, then apply_scale.
void fill_entries(std::span<float> out, const EntryLaw& law, std::uint64_t seed, Stream stream,
                  std::uint64_t trial);

// Gives independent standard entries the correlation rho, all pairs alike, by the symmetric square
// root of (1 - rho) I + rho 1 1': x -> sqrt(1 - rho) x + (sqrt(1 + (d-1) rho) - sqrt(1 - rho))
// mean(x). Throws InputError unless -1/(d-1) <= rho <= 1.
void equicorrelate(std::span<float> entries, double rho);

// Gives standard entries k the correlation rho with the entries q of the same index:
// k -> rho q + sqrt(1 - rho^2) k. Throws InputError unless -1 <= rho <= 1.
void correlate_with(std::span<float> k, std::span<const float> q, double rho);

}  // namespace attnlab
