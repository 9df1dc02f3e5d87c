#pragma once

#include "attnlab/attention/scaled_dot_product.h"

namespace attnlab {

// The gradients of a loss with respect to the inputs of one attention call. Those not asked for
// are absent.
template <class T>
struct AttentionGradients {
  std::optional<Tensor<T>> grad_q;  // [batch, heads, n, d_k]
  std::optional<Tensor<T>> grad_k;  // [batch, kv_heads, m, d_k]
  std::optional<Tensor<T>> grad_v;  // [batch, kv_heads, m, d_v]
};

// The backward pass of scaled_dot_product: with grad_output = dL/d output [batch, heads, n, d_v]
// and, of each head, P = weights, D what dropout does to them (0 or 1 / (1 - dropout)) and
// S = scores,
//
//     grad_v = (D o P)^T grad_output
//     G      = D o (grad_output V^T)
//     grad_S = P o (G - rowsum(P o G)) o (1 - tanh(S / C)^2)      the last factor with a softcap
//     grad_q = scale grad_S K
//     grad_k = scale grad_S^T Q
//
// (the chain rule; Dao, Fu, Ermon, Rudra and Re, "FlashAttention", 2022, appendix B.2). The heads
// of a group add up in grad_k and grad_v. An additive mask is a constant. Inputs, mask and settings
// are those of the forward call, the seed too, so that the same weights are dropped; the weights
// are computed again.
//
// In a row that saturates, G is taken less its entry at the largest weight, which changes nothing
// on paper: the row keeps the gradients of its other keys, which the plain form loses to
// cancellation.
//
// A row that may attend to no key contributes 0. Masked entries are selected, not multiplied: what
// lies under the mask, in k and v for the queries that do not see a key and in q and grad_output
// for the keys that a query does not see, never matters. NaN and infinities outside it propagate.
//
// Kernel `full` follows these lines step by step; `tiled`, which automatic is, is the fast one, see
// kernel/backward_tiled.h. `want` names the gradients to compute. Memory beside them: linear in m a
// thread, with tiled also up to eight times grad_k and grad_v where there are few heads. The bits
// do not depend on the threads, nor on what is wanted.
//
// Throws InputError as scaled_dot_product does, and naming "grad_output" when it has not the shape
// of the output.
template <class T>
AttentionGradients<T> scaled_dot_product_backward(
    const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const Tensor<T>& grad_output,
    const Mask& mask, const AttentionSettings& settings,
    const Request& want = {"grad_q", "grad_k", "grad_v"});

}  // namespace attnlab
