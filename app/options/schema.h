#pragma once

#include <string_view>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/io/json.h"

namespace attnlab {

// The JSON Schema (draft 2020-12) of a command's config: a config is accepted when it is valid,
// except that arrays of numbers in place of a tensor must also be rectangular. Defaults are the
// values the options hold now; `results` gives the names that --show and --save may choose.
Json schema_of(std::string_view command, const std::vector<OptionRef>& options,
               const std::vector<ResultRef>& results);

}  // namespace attnlab
