#pragma once

#include <optional>
#include <string>

#include "attnlab/core/describe.h"

namespace attnlab {

// The rules of an option in words, for errors and the help.

// What a number of the range may be: "at least 2", "1 to 17", "at least 0 and less than 1"; empty
// when it may be any.
std::string range_text(const OptionRange& range);

// What values of the option look like: "an integer, at least 2", "auto, none or a number".
std::string value_text(const OptionRef& option);

// What breaks a range: the number, and the rule it broke.
struct RangeViolation {
  std::string value;
  std::string rule;
};

// The first number of the option's value that is out of its range.
std::optional<RangeViolation> range_violation(const OptionRef& option);

}  // namespace attnlab
