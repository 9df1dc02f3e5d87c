#pragma once

#include "attnlab/attention/multi_head.h"

namespace attnlab {

// The gradients of a loss with respect to the inputs and weights of one layer, each of the shape of
// what it belongs to. Those not asked for, those of biases and norms the layer has not (of bias_k
// and bias_v too), and those of a past where there is none are absent.
template <class T>
struct MultiHeadGradients {
  std::optional<Tensor<T>> grad_query;  // [batch, n, d_query]
  std::optional<Tensor<T>> grad_key;    // [batch, m, d_key]
  std::optional<Tensor<T>> grad_value;  // [batch, m, d_value]
  std::optional<Tensor<T>> grad_w_q, grad_b_q, grad_w_k, grad_b_k, grad_w_v, grad_b_v;
  std::optional<Tensor<T>> grad_w_o, grad_b_o;
  std::optional<Tensor<T>> grad_q_norm, grad_k_norm;  // [d_k]
  std::optional<Tensor<T>> grad_bias_k, grad_bias_v;
  std::optional<Tensor<T>> grad_past_k;  // [batch, kv_heads, p, d_k]
  std::optional<Tensor<T>> grad_past_v;  // [batch, kv_heads, p, d_v]
};

// The names of every gradient there can be.
Request all_layer_gradients();

// The backward pass of multi_head: with grad_output = dL/d output [batch, n, d_output],
//
//     grad_w_o    = concat^T grad_output          output = concat w_o + b_o
//     grad_b_o    = sum of its rows
//     grad_concat = grad_output w_o^T
//     grad_q, grad_k, grad_v by scaled_dot_product_backward, taken back through rotation and norm
//     (rotate_back, rms_norm_backward, which gives grad_q_norm), heads merged
//     grad_w_q    = query^T grad_q                q = query w_q + b_q
//     grad_b_q    = sum of its rows
//     grad_query  = grad_q w_q^T
//
// and k and v alike (the chain rule), once the keys of a past and of the layer's own have taken
// their rows from grad_k and grad_v; matrices of all batch entries add up in those of weights and
// biases. Where one tensor is given as several inputs, as x in self-attention, its gradient is the
// sum of theirs. grad_b_k is 0 but for rounding unless there is a softcap, a past, a norm, a
// rotation or a key of the layer's own: a key bias adds the same to all scores of a row, which
// changes no weight.
//
// `forward` is what multi_head returned for the same arguments, its q, k and v, as they are, normed
// and rotated, and concat. A row of an input that the mask hides altogether (a key that no query
// sees, a query that sees none) adds nothing to any gradient of that projection, NaN included.
//
// `want` names the gradients to compute. The bits do not depend on the threads, nor on what is
// wanted. Throws InputError as multi_head does, naming "grad_output" when it has not the shape of
// the output and "forward" when that is not of these arguments, and when there is no memory.
template <class T>
MultiHeadGradients<T> multi_head_backward(const Tensor<T>& query, const Tensor<T>& key,
                                          const Tensor<T>& value, const MultiHeadParams<T>& params,
                                          const MultiHeadResult<T>& forward,
                                          const Tensor<T>& grad_output, const Mask& mask,
                                          const AttentionSettings& settings,
                                          const Request& want = all_layer_gradients(),
                                          const Past<T>* past = nullptr);

}  // namespace attnlab
