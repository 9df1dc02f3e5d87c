#pragma once

#include "attnlab/core/dtype.h"

namespace attnlab {

// Floating-point operations a second of fused float32 multiply-adds (two operations each) in the
// widest vectors the processor has, on `threads` threads at once (0 = all cores), out of registers
// alone: what every matrix product stays below. One probe of about a millisecond a thread. A thread
// that the system holds up makes it lower, never higher: the highest of several is the peak.
double fma_rate(Index threads);

}  // namespace attnlab
