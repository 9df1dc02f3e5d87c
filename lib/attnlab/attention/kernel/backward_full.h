#pragma once

#include "attnlab/attention/kernel/row_block.h"
#include "attnlab/attention/kernel/values.h"
#include "attnlab/attention/scaled_dot_product_backward.h"

namespace attnlab {

// What a backward kernel is given: inputs that agree with each other, and settings within their
// ranges.
template <class T>
struct BackwardCall {
  const Values<T>& q;            // [batch, heads, n, d_k]
  const Values<T>& k;            // [batch, kv_heads, m, d_k]
  const Values<T>& v;            // [batch, kv_heads, m, d_v]
  const Values<T>& grad_output;  // [batch, heads, n, d_v]
  const Mask& mask;
  const AttentionSettings& settings;
};

// The plain path: the formula of scaled_dot_product_backward step by step, over blocks of kFullRows
// queries; a task is a key/value head, whose sums are in the order of the queries that share it.
// Adds to the gradients that there are, which start at 0.
template <class T>
void backward_full(const BackwardCall<T>& call, Index threads, AttentionGradients<T>& gradients);

// The same for the queries of one block, with grad_v or without.
template <class T>
void backward_full(const BackwardCall<T>& call, const RowBlock& block, bool adds_grad_v,
                   AttentionGradients<T>& gradients);

}  // namespace attnlab
