#include "attnlab/io/number_text.h"

#include <fmt/compile.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace attnlab {
namespace {

// Whether a well-formed nonzero number that float64 cannot hold is too small rather than too large:
// whether its first nonzero digit stands behind the point once the exponent is applied.
bool is_tiny(std::string_view digits) {
  const std::size_t e = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, e);
  const std::size_t first = mantissa.find_first_of("123456789");
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const auto magnitude = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (e == std::string_view::npos) return magnitude < 0;
  std::string_view exponent = digits.substr(e + 1);
  const bool negative = exponent.front() == '-';
  if (exponent.front() == '+') exponent.remove_prefix(1);
  std::int64_t power = 0;
  const auto [end, error] =
      std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (error != std::errc()) return negative;
  // No text is long enough to make up for such an exponent, and the sum must not overflow.
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  return magnitude + std::clamp(power, -kMost, kMost) < 0;
}

// A string that grows by single characters is slow.
template <class T>
void append_formatted(std::string& out, T value) {
  std::array<char, 32> text{};  // more than the longest float64, -2.2250738585072014e-308
  out.append(text.data(), fmt::format_to(text.data(), FMT_COMPILE("{}"), value));
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  // from_chars would also take "inf" and "nan", and no plus sign.
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc()) return value;
  const bool negative = text.front() == '-';
  const double magnitude =
      is_tiny(text.substr(negative ? 1 : 0)) ? 0.0 : std::numeric_limits<double>::infinity();
  return negative ? -magnitude : magnitude;
}

std::string_view non_finite_name(double value) {
  if (std::isfinite(value)) return "";
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

std::optional<double> parse_non_finite(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += non_finite_name(value);
  } else if (value == 0 && std::signbit(value)) {
    // "-0" would be read as an integer, which has no negative zero.
    out += "-0.0";
  } else {
    append_formatted(out, value);
  }
}

void append_number(std::string& out, std::int64_t value) { append_formatted(out, value); }

void append_number(std::string& out, std::uint64_t value) { append_formatted(out, value); }

}  // namespace attnlab
