#include "options/numbers.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "attnlab/core/text.h"
#include "attnlab/io/number_text.h"

namespace attnlab {
namespace {

std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  text = without_plus(text);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_word(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string word = lower_case(negative ? text.substr(1) : without_plus(text));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "inf" || word == "infinity") return negative ? -kInfinity : kInfinity;
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

}  // namespace

std::optional<Index> parse_integer(std::string_view text) { return parse_whole<Index>(text); }

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

std::optional<double> parse_real(std::string_view text, bool non_finite) {
  if (const auto word = parse_word(text)) return non_finite ? word : std::nullopt;
  const std::optional<double> number = parse_number(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

bool looks_numeric(std::string_view text) {
  if (parse_word(text)) return true;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() &&
         (is_digit(text[0]) || (text[0] == '.' && text.size() > 1 && is_digit(text[1])));
}

}  // namespace attnlab
