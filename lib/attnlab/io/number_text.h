#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attnlab {

// The number that all of `text` is: an optional sign, digits with an optional point, an optional
// exponent, as in C but whatever the locale. Nothing when it is none; infinite when it is too
// large for float64. What is too small rounds to zero.
std::optional<double> parse_number(std::string_view text);

// NaN, Infinity or -Infinity: how these stand in every file; "" for a finite value.
std::string_view non_finite_name(double value);
// The value of one of the three names.
std::optional<double> parse_non_finite(std::string_view text);

// Appends the shortest text that reads back as the same float64; a negative zero keeps its sign
// ("-0.0"). Non-finite values by their names.
void append_number(std::string& out, double value);
void append_number(std::string& out, std::int64_t value);
void append_number(std::string& out, std::uint64_t value);

}  // namespace attnlab
