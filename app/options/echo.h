#pragma once

#include <string>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/io/json.h"

namespace attnlab {

// The option's value as a config would have it: paths absolute, absent values null.
Json option_to_json(const OptionRef& option);

// The effective options of a run for its result: an object of those with echo. Read as a config it
// gives the same options. Paths and texts that are not UTF-8 cannot stand in JSON: their bad bytes
// become U+FFFD.
Json options_to_json(const std::vector<OptionRef>& options);

}  // namespace attnlab
