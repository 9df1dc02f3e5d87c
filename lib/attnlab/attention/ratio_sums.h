#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>

namespace attnlab {

// The passes over one row of n logits z in vectors. A row is held as its ratios to the largest
// weight, rho_i = s_i / s_m = e^(z_i - z_m), with 0 in the place of the largest itself: sums over
// the others are sums over all. All arrays have the length padded_length(n), from the start of a
// cache line on, and end in ratios of 0. Sums are of kRatioParts interleaved parts, so that every
// target has the same bits.
inline constexpr std::size_t kRatioParts = 8;
constexpr std::size_t padded_length(std::size_t n) {
  constexpr std::size_t kUnit = 2 * kRatioParts;
  return (n + kUnit - 1) / kUnit * kUnit;
}

struct LogitRange {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  bool finite = true;  // all of them; only then are the others known
};

// logits = factor scores, -infinity behind them.
LogitRange scale_logits(std::span<const double> scores, double factor, double* logits);

// The first place of the value, which is there.
std::size_t first_place(const double* logits, std::size_t n, double value);

// Logits to the logarithms of their ratios, z_i - z_m, in their place, and to the ratios: -infinity
// and 0 for the largest. The range is that of the logits.
void ratios_of_logits(double* logits, double* ratios, std::size_t n, std::size_t largest,
                      const LogitRange& range);

struct RatioSums {
  double ratios = 0;                                         // sum rho
  double squares = 0;                                        // sum rho^2
  double cubes = 0;                                          // sum rho^3
  double surprise = 0;                                       // -sum rho ln rho
  double largest = 0;                                        // max rho
  double second = -std::numeric_limits<double>::infinity();  // max ln rho
};
RatioSums sums_of_ratios(const double* ratios, const double* log_ratios, std::size_t n);

// Sums of the squares and cubes of small ratios, both times scale^2: those alone would vanish.
struct ScaledPowers {
  double squares = 0, cubes = 0;
};
ScaledPowers scaled_powers(const double* ratios, std::size_t n, double scale);

// Sums of t, t^2, .. t^6 with t = rho / (x - rho), for x above every ratio.
inline constexpr std::size_t kSecularSums = 6;
std::array<double, kSecularSums> secular_sums(const double* ratios, std::size_t n, double x);

// Writes the ratios of at most `limit` to `to`, where there is room for padded_length(n), in
// their order; their number.
std::size_t small_ratios(const double* ratios, std::size_t n, double limit, double* to);

}  // namespace attnlab
