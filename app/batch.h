#pragma once

#include <memory>
#include <vector>

#include "run.h"

namespace attnlab {

// Runs one after the other that succeed or fail together: all are checked before the first is
// computed, and nothing is written before the last has been. Results that go to the same place are
// joined: tables under their titles, a JSON array, JSON lines, CSV under one header.
using Batch = std::vector<std::unique_ptr<Run>>;

// Returns the largest exit code of the runs. Throws InputError, `origins` being those of the run
// at work.
int run_batch(const Batch& batch, Origins& origins);

}  // namespace attnlab
