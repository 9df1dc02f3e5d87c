#pragma once

#include <cstdint>

#include "attnlab/attention/kernel/backward_full.h"

namespace attnlab {

// Queries that backward_tiled takes at once, whole panels of vectors on every processor: few, whose
// tiles stay in the caches, or, where K and V with the sums of their gradients are many times what
// the second cache holds, as many as make reading and writing those little beside computing them.
inline constexpr Index kBackwardRows = 64, kMostBackwardRows = 192;

// Rows of the sums below start at whole vectors of any processor.
template <class T>
inline constexpr Index kBackwardPad = 64 / static_cast<Index>(sizeof(T));

// What a row leaves to backward_full, since something not finite is in it.
enum class LeftOut : std::uint8_t {
  nothing,
  grad_scores,  // what passes through the gradient of its scores: grad_q and grad_k
  all,          // its weights: grad_v too
};

// What one task computes: of key/value head `kv_head` of batch entry b, every step-th block of the
// queries that share it from the first on, head by head, in order.
template <class T>
struct BackwardShare {
  Index b = 0;
  Index kv_head = 0;
  Index first = 0;
  Index step = 1;
  Index rows = kBackwardRows;  // of a block
  // Where the share adds up [m, width] of the head, rows `stride` apart, a multiple of
  // kBackwardPad; null where it is not wanted.
  T* grad_k = nullptr;
  T* grad_v = nullptr;
  Index stride_k = 0;
  Index stride_v = 0;
  T* grad_q = nullptr;          // the whole tensor, or null
  LeftOut* left_out = nullptr;  // of each row of [batch, heads, n]
};

// The fast path, as FlashAttention's (Dao et al., 2022, algorithm 4; Dao, "FlashAttention-2", 2023)
// in that no [n, m] is held. A block of queries meets the keys in tiles three times: for its scores
// and their maxima; for weights, grad_output V^T and the mean that the softmax subtracts; and for
// the three gradients. Between them the block's two matrices [m, rows] are kept: memory linear in m
// a thread, and five products, none of them done again.
//
// The queries of a head are shared out among tasks in a way that depends on the shape alone, and
// what the shares have added up is added in order, so that the bits do not depend on the threads.
// Rows that see something not finite, in the inputs or by overflow, go through backward_full.
//
// Runs on what vectors the processor has, as attend_tiled does.
template <class T>
void backward_tiled(const BackwardCall<T>& call, Index threads, AttentionGradients<T>& gradients);

}  // namespace attnlab
