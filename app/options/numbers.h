#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "attnlab/core/dtype.h"

namespace attnlab {

// Numbers as text. The whole text must be the number; a leading + is allowed, spaces and
// hexadecimal digits are not. The locale plays no part.

// Nothing when the text is no integer or does not fit.
std::optional<Index> parse_integer(std::string_view text);
std::optional<std::uint64_t> parse_unsigned(std::string_view text);

// Nothing when the text is no number or is beyond float64; what is too small for it is rounded, to
// 0 at last. NaN, inf and infinity, in capitals or not, are numbers only where `non_finite` says
// so.
std::optional<double> parse_real(std::string_view text, bool non_finite = false);

// Whether the text could only be meant as a number: "-.5", "-1e-3", "-inf".
bool looks_numeric(std::string_view text);

}  // namespace attnlab
