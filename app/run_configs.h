#pragma once

#include "command.h"

namespace attnlab {

// run CONFIG...: what the configs ask for, one after the other.
Command run_configs_command();

}  // namespace attnlab
