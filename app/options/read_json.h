#pragma once

#include <string>

#include "attnlab/core/describe.h"
#include "attnlab/io/json.h"

namespace attnlab {

// Where a config stands: the name it has in errors, and the folder its paths are relative to
// (empty for the working directory).
struct ConfigPlace {
  std::string source;
  std::string folder;
};

// Sets the option to the value its key has in a config. Numbers are read as JSON has them, never
// through text: 1.5 is no integer, -1 no seed, "5" no number. null unsets what may be absent.
// Throws InputError naming the config and the key. Ranges are checked later, once for all sources.
void read_json(const OptionRef& option, const Json& value, const ConfigPlace& place);

}  // namespace attnlab
