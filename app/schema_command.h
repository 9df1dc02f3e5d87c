#pragma once

#include "command.h"

namespace attnlab {

// schema COMMAND: the JSON Schema of a command's config on standard output.
Command schema_command();

}  // namespace attnlab
