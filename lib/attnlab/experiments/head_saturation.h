#pragma once

#include "attnlab/core/watch.h"
#include "attnlab/experiments/saturation.h"

namespace attnlab {

// The saturation of the heads of given weights, a row a head over all its batch entries. Beside
// each metric stands the mean over the same rows of what softmax_theory(n, v) gives, n the keys
// that a row sees and v the variance of its logits over them (divisor n - 1): what random scores of
// the same variance would make of it.
//
// v is itself known from n logits only, and what theory makes of it is no straight line in v. So
// rows of random scores stand off their theory by the order of 1/n: at v = 2.5 their entropy is 3%
// below it for n = 8 and 0.1% for n = 64, at v = 10 8% and 0.5%.
//
// The rows of one matrix share its keys and are not independent; batch entries are. So the
// interval of a metric is the t interval over the entries, and there is none for one entry.
//
// Throws InputError, also for an option that is of drawn scores.
SaturationResult head_saturation(const SaturationOptions& options, const Watch& watch);

}  // namespace attnlab
