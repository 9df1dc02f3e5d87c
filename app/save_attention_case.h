#pragma once

#include "attnlab/experiments/attend.h"

namespace attnlab {

// Writes the folder of --save-case, where the options name one, with a config that reruns. Throws
// InputError.
void save_attention_case(const AttendOptions& options, const AttendResult& result);

}  // namespace attnlab
