#pragma once

#include "attnlab/attention/kernel/call.h"

namespace attnlab {

// Queries that tiled computes at once: packed keys are used for as many, and their share of the
// output stays in the second cache. How many there are changes no bits. (192 instead were 4% slower
// at d_k 64, for K and V come from the third cache once a block.)
inline constexpr Index kTiledRows = 768;

// The fast path: keys in tiles of a fixed size from the first on, an online softmax over them
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022), and no [n, m] anywhere but in the weights, if they are wanted. Writes
// the block's rows of the output, and of the weights when `result` holds them, and counts the
// rows whose weights are all 0. Each row is computed alone, the same way whatever block it is in.
//
// Runs on what vectors the processor has: SSE4, AVX2, AVX-512 or NEON, chosen at run time. Weights
// whose part of the largest is below the smallest normal number may be 0.
template <class T>
ZeroRows attend_tiled(const KernelCall<T>& call, const RowBlock& block, AttentionResult<T>& result);

// The vectors that attend_tiled runs on here: "AVX2".
const char* tiled_target();

}  // namespace attnlab
