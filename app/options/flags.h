#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

// What the command line gave for each option, not yet read, by option name. Several texts for an
// option that repeats and for a list given without its flag.
using FlagValues = std::map<std::string, std::vector<std::string>, std::less<>>;

// Whether --help is among the arguments (before a "--").
bool asks_for_help(std::span<const std::string> arguments);

// Sorts arguments into options. A flag is the option's whole name, its value the next argument or
// what follows "=": -1, -.5, -inf and - are values, "--..." is one only after "=". Whatever starts
// with no "-" or looks like a number, and all after "--", is positional. Unknown options, missing
// values, options given twice and arguments too many are InputErrors.
FlagValues parse_flags(const std::vector<OptionRef>& options,
                       std::span<const std::string> arguments);

}  // namespace attnlab
