#pragma once

#include "attnlab/attention/kernel/values.h"
#include "attnlab/attention/scaled_dot_product_backward.h"

namespace attnlab {

// What a backward kernel is given: inputs that agree with each other, and settings within their
// ranges.
template <class T>
struct BackwardCall {
  const Values<T>& q;            // [batch, heads, n, d_k]
  const Values<T>& k;            // [batch, kv_heads, m, d_k]
  const Tensor<T>& v;            // [batch, kv_heads, m, d_v]
  const Values<T>& grad_output;  // [batch, heads, n, d_v]
  const Mask& mask;
  const AttentionSettings& settings;
};

// The plain path: the formula of scaled_dot_product_backward step by step, over blocks of kFullRows
// queries of the heads that share key/value head `kv_head` of batch entry b, in order. Adds to the
// gradients that there are, which start at 0: nothing else writes what belongs to this head.
template <class T>
void backward_full(const BackwardCall<T>& call, Index b, Index kv_head,
                   AttentionGradients<T>& gradients);

}  // namespace attnlab
