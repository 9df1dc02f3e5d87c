#pragma once

#include "attnlab/attention/kernel/row_block.h"
#include "attnlab/attention/kernel/values.h"
#include "attnlab/attention/scaled_dot_product.h"

namespace attnlab {

// What a kernel is given: inputs that agree with each other, and settings within their ranges.
template <class T>
struct KernelCall {
  const Tensor<T>& q;  // [batch, heads, n, d_k]
  const Tensor<T>& k;  // [batch, kv_heads, m, d_k]
  const Values<T>& v;  // [batch, kv_heads, m, d_v]
  const Mask& mask;
  const AttentionSettings& settings;

  // Where head h of batch entry b stands among the matrices of q and those of k and v.
  Index query_matrix(Index b, Index h) const { return b * mask.heads() + h; }
  Index key_matrix(Index b, Index h) const {
    const Index kv_heads = k.shape()[1];
    return b * kv_heads + h / (mask.heads() / kv_heads);
  }
};

}  // namespace attnlab
