#pragma once

#include "command.h"

namespace attnlab {

// attnlab merge: the results of --shard 1/N .. N/N joined into what one run gives.
Command merge_command();

}  // namespace attnlab
