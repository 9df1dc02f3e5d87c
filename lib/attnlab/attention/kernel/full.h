#pragma once

#include "attnlab/attention/kernel/call.h"

namespace attnlab {

// Queries that full computes at once: what its memory holds beside the result is a matrix of as
// many rows and m columns a thread.
inline constexpr Index kFullRows = 64;

// The plain path: the formula of scaled_dot_product step by step, each matrix of the block whole.
// Writes the block's rows of the output and of each matrix that `result` holds, and returns how
// many of the rows have no weights. What is computed does not depend on which matrices those are.
template <class T>
ZeroRows attend_full(const KernelCall<T>& call, const RowBlock& block, AttentionResult<T>& result);

}  // namespace attnlab
