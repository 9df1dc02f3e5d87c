#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

// The numbers in exponential_of and attention/exponential-inl.h.
namespace attnlab::exponential_constants {

// q with e^r = 1 + r + r^2 q(r) for |r| at most ln 2 / 2, the highest power first. Minimax in
// relative error of the exponential, 3.6e-18 (0.03 of a float64 rounding).
inline constexpr std::array kQuotient = {
    0x1.ad7fa88df8bf0p-26, 0x1.28ad6892f1381p-22, 0x1.71df251db219cp-19, 0x1.a0199a16f8b41p-16,
    0x1.a01a012a763d4p-13, 0x1.6c16c18426636p-10, 0x1.1111111127b77p-7,  0x1.555555555088cp-5,
    0x1.55555555554fap-3,  0x1.000000000000ap-1};

inline constexpr double kLog2E = 1.4426950408889634;
// ln 2 in two parts, the first so short that its whole multiples below 2048 are exact.
inline constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
inline constexpr double kRound = 0x1.8p52;  // added and taken away it leaves a whole number
// From here on the exponential is normal.
inline constexpr double kLowestNormal = -708;

}  // namespace attnlab::exponential_constants

namespace attnlab {

// e^x for x in [-1000, 0], within 1 unit in the last place; where it is subnormal, within 1.1 of
// 2^-1074.
// Explicit fused multiply-adds and IEEE operations only, so that every compiler and every target of
// vectors gives the same bits: x is n whole powers of two and a rest r of at most half of one,
// e^r = 1 + (r + r^2 q(r)) with the even and the odd powers of q apart, and n goes into the
// exponent.
inline double exponential_of(double x) {
  namespace constants = exponential_constants;
  // The whole number also stands in the low bits of what it is rounded with.
  const double shifted = std::fma(x, constants::kLog2E, constants::kRound);
  const double n = shifted - constants::kRound;
  const double r = std::fma(-n, constants::kLn2Low, std::fma(-n, constants::kLn2High, x));
  const double r2 = r * r;
  constexpr std::array q = constants::kQuotient;
  double odd = q[0], even = q[1];
  for (std::size_t k = 2; k < q.size(); k += 2) {
    odd = std::fma(odd, r2, q[k]);
    even = std::fma(even, r2, q[k + 1]);
  }
  const double power = std::fma(r2, std::fma(odd, r, even), r) + 1;
  // In two steps, of which only the second can round.
  const double first = std::max(n, -500.0);
  const auto times_power = [](double value, double whole) {
    const auto bits = std::bit_cast<std::uint64_t>(whole + constants::kRound);
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) + (bits << 52));
  };
  return times_power(power, first) * times_power(1, n - first);
}

}  // namespace attnlab
