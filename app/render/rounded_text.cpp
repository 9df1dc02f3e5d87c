#include "render/rounded_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "render/text_width.h"

namespace attnlab {
namespace {

// The shortest decimal of a finite number other than 0: d.ddd x 10^exponent.
struct Decimal {
  int digits = 1;
  int exponent = 0;
  bool power_of_ten = false;

  // Decimals that show it exactly.
  int decimals() const { return std::max(0, digits - 1 - exponent); }
  // The least e with |value| <= 10^e.
  int ceiling() const { return power_of_ten ? exponent : exponent + 1; }
};

template <class T>
Decimal decimal_of(T value) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific)
          .ptr;
  const char* e = std::find(buffer, end, 'e');
  Decimal decimal;
  decimal.digits = std::max<int>(1, static_cast<int>(e - buffer) - 1);
  std::from_chars(e[1] == '+' ? e + 2 : e + 1, end, decimal.exponent);
  decimal.power_of_ten = decimal.digits == 1 && buffer[0] == '1';
  return decimal;
}

// 16-bit numbers are exact in float32, whose shortest text is shorter than float64's.
Decimal decimal_of(const AnyTensor& tensor, Index i) {
  const double value = tensor.at(i);
  const bool single = is_floating(tensor.dtype()) && tensor.dtype() != DType::float64;
  return single ? decimal_of(static_cast<float>(value)) : decimal_of(value);
}

std::string integer_text(const AnyTensor& tensor, Index i) {
  return tensor.visit([i](const auto& t) -> std::string {
    if constexpr (std::is_integral_v<std::decay_t<decltype(t[i])>>) {
      return fmt::format("{:d}", t[i]);
    } else {
      return {};
    }
  });
}

std::string special_text(double value) {
  return std::isnan(value) ? "NaN" : value < 0 ? "-inf" : "inf";
}

std::string significant_text(double value, const Decimal& exact, int digits) {
  const bool fixed = exact.exponent >= -5 && exact.exponent < 8;
  const int shown = std::min(exact.digits, digits);
  if (!fixed) return fmt::format("{:.{}e}", value, shown - 1);
  return fmt::format("{:.{}f}", value, std::max(0, shown - 1 - exact.exponent));
}

// Columns before the decimal point or exponent.
int left_width(const std::string& text) {
  return static_cast<int>(std::min(text.find_first_of(".e"), text.size()));
}

}  // namespace

std::string significant_text(double value, int digits) {
  if (!std::isfinite(value)) return special_text(value);
  if (value == 0) return "0";
  return significant_text(value, decimal_of(value), digits);
}

std::string significant_text(const AnyTensor& tensor, Index i, int digits) {
  if (!is_floating(tensor.dtype())) return integer_text(tensor, i);
  const double value = tensor.at(i);
  if (!std::isfinite(value) || value == 0) return significant_text(value, digits);
  return significant_text(value, decimal_of(tensor, i), digits);
}

MatrixFormat::MatrixFormat(const AnyTensor& tensor, std::span<const Index> elements, int digits)
    : tensor_(tensor) {
  int ceiling = std::numeric_limits<int>::min();
  int largest = ceiling, smallest = std::numeric_limits<int>::max();
  int most_decimals = 0, most_digits = 1;
  for (const Index i : elements) {
    const double value = tensor.at(i);
    if (value == 0 || !std::isfinite(value)) continue;
    const Decimal decimal = decimal_of(tensor, i);
    ceiling = std::max(ceiling, decimal.ceiling());
    largest = std::max(largest, decimal.exponent);
    smallest = std::min(smallest, decimal.exponent);
    most_decimals = std::max(most_decimals, decimal.decimals());
    most_digits = std::max(most_digits, decimal.digits);
  }
  if (smallest <= largest && is_floating(tensor.dtype())) {
    const int base = std::max(0, digits - ceiling);
    // Every decimal beyond `base` is there for the smallest element alone.
    constexpr int kMostExtra = 2;
    scientific_ = largest < -4 || largest >= 8 || -smallest > base + kMostExtra;
    decimals_ = scientific_ ? std::min(digits, most_digits) - 1
                            : std::min(std::max(base, -smallest), most_decimals);
  }
  int special = 0;
  for (const Index i : elements) {
    const std::string number = text(i);
    const int size = static_cast<int>(number.size());
    if (is_floating(tensor.dtype()) && !std::isfinite(tensor.at(i))) {
      special = std::max(special, size);
      continue;
    }
    left_ = std::max(left_, left_width(number));
    right_ = std::max(right_, size - left_width(number));
  }
  left_ = std::max(left_, special - right_);
}

std::string MatrixFormat::text(Index i) const {
  if (!is_floating(tensor_.dtype())) return integer_text(tensor_, i);
  const double value = tensor_.at(i);
  if (!std::isfinite(value)) return special_text(value);
  if (value == 0) return "0";
  return scientific_ ? fmt::format("{:.{}e}", value, decimals_)
                     : fmt::format("{:.{}f}", value, decimals_);
}

std::string MatrixFormat::cell(Index i) const {
  const std::string number = text(i);
  if (is_floating(tensor_.dtype()) && !std::isfinite(tensor_.at(i))) {
    return pad_left(number, width());
  }
  const auto fill = static_cast<std::size_t>(std::max(0, left_ - left_width(number)));
  return pad_right(std::string(fill, ' ') + number, width());
}

}  // namespace attnlab
