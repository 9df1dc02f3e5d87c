#pragma once

#include <functional>

#include "attnlab/core/dtype.h"

namespace attnlab {

// Threads that `requested` stands for: 0 is as many as there are cores.
Index thread_count(Index requested);

// Calls work(i) for every i in [0, count), on at most `threads` threads at once (0 = all cores).
// Which thread does what is left open: work must write only what belongs to its i. The first
// exception stops the rest and is thrown here.
void parallel_for(Index threads, Index count, const std::function<void(Index)>& work);

}  // namespace attnlab
