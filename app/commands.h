#pragma once

#include <vector>

#include "command.h"

namespace attnlab {

// Every command, in the order the help lists them.
std::vector<Command> all_commands();

}  // namespace attnlab
