#pragma once

#include <cstdint>
#include <optional>

#include "attnlab/attention/past.h"
#include "attnlab/attention/rotary.h"
#include "attnlab/attention/scaled_dot_product.h"

namespace attnlab {

// The sizes of a layer.
struct MultiHeadShape {
  Index d_query = 0;  // width of the query input, d_model
  Index d_key = 0;    // width of the key input
  Index d_value = 0;  // width of the value input
  Index d_output = 0;
  Index heads = 1;
  Index kv_heads = 1;
  Index d_k = 0;  // width of a query and key head
  Index d_v = 0;  // width of a value head
  bool bias = false;
  bool qk_norm = false;  // queries and keys are normalised
};

// What the normalisation of queries and keys adds to their mean square, in Qwen3.
inline constexpr double kDefaultNormEps = 1e-6;

// W_q [d_query, heads d_k], W_k [d_key, kv_heads d_k], W_v [d_value, kv_heads d_v],
// W_o [heads d_v, d_output], applied from the right: Q = X W_q + b_q. Heads lie side by side in
// the columns of W_q, W_k, W_v and in the rows of W_o.
template <class T>
struct MultiHeadParams {
  Index heads = 1;
  Index kv_heads = 1;
  Tensor<T> w_q, w_k, w_v, w_o;
  std::optional<Tensor<T>> b_q, b_k, b_v, b_o;
  // Queries and keys are normalised one head at a time, see rms_norm: weights [d_k].
  std::optional<Tensor<T>> q_norm = std::nullopt, k_norm = std::nullopt;
  double qk_norm_eps = kDefaultNormEps;
  // Queries and keys, normed or not, are rotated by their positions, see rotate.
  std::optional<double> rope_theta = std::nullopt;
  // Keys and values of the layer's own, which every query sees behind those of the sequence: one
  // that is learnt, bias_k [kv_heads d_k] and bias_v [kv_heads d_v], both or none, and one of
  // zeros, as PyTorch's nn.MultiheadAttention has them (add_bias_kv, add_zero_attn). They stand
  // nowhere: neither norm, rotation nor linear bias is theirs.
  std::optional<Tensor<T>> bias_k = std::nullopt, bias_v = std::nullopt;
  bool add_zero_attn = false;

  // How many keys are the layer's own.
  Index own_keys() const { return (bias_k ? 1 : 0) + (add_zero_attn ? 1 : 0); }
  // The sizes the tensors imply. Throws InputError when they do not agree with each other or are
  // not divisible by the heads, naming the tensor and both numbers.
  MultiHeadShape shape() const;
};

// How weights are drawn; biases start at 0.
enum class Init {
  xavier_uniform,  // U(-a, a), a = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010, eq. 16)
  normal,          // N(0, std^2)
};

// A layer drawn from the seed; weights of norms are 1. `layer` keeps the layers of one model apart.
// The values do not depend on T beyond its rounding.
template <class T>
MultiHeadParams<T> draw_multi_head(const MultiHeadShape& shape, Init init, double std,
                                   std::uint64_t seed, std::uint64_t layer = 0);

// The matrices of one call, in the order they are computed.
template <class T>
struct MultiHeadResult {
  Tensor<T> q;                         // query W_q + b_q, split     [batch, heads, n, d_k]
  Tensor<T> k;                         // key W_k + b_k, split       [batch, kv_heads, m, d_k]
  Tensor<T> v;                         // value W_v + b_v, split     [batch, kv_heads, m, d_v]
  std::optional<Tensor<T>> normed_q;   // with a q_norm              [batch, heads, n, d_k]
  std::optional<Tensor<T>> normed_k;   // with a k_norm              [batch, kv_heads, m, d_k]
  std::optional<Tensor<T>> rotated_q;  // with a rope_theta          [batch, heads, n, d_k]
  std::optional<Tensor<T>> rotated_k;  //                            [batch, kv_heads, m, d_k]
  std::optional<Tensor<T>> present_k;  // the past's keys, then k    [batch, kv_heads, p + m, d_k]
  std::optional<Tensor<T>> present_v;  // the past's values, then v  [batch, kv_heads, p + m, d_v]
  AttentionResult<T> attention;        // its output: each head's    [batch, heads, n, d_v]
  Tensor<T> concat;                    // the heads side by side     [batch, n, heads d_v]
  Tensor<T> output;                    // concat W_o + b_o           [batch, n, d_output]

  // Queries and keys before they are rotated, and as they meet.
  const Tensor<T>& plain_queries() const { return normed_q ? *normed_q : q; }
  const Tensor<T>& plain_keys() const { return normed_k ? *normed_k : k; }
  const Tensor<T>& queries() const { return rotated_q ? *rotated_q : plain_queries(); }
  const Tensor<T>& keys() const { return rotated_k ? *rotated_k : plain_keys(); }
};

// Multi-head attention, Concat(head_1, ..., head_h) W_o with head_i = Attention(query W_q_i,
// key W_k_i, value W_v_i) (Vaswani et al., 2017, section 3.2.2). query [batch, n, d_query],
// key [batch, m, d_key], value [batch, m, d_value]: self-attention gives one tensor three times,
// cross-attention the memory as key and value.
//
// The keys and values of a past, k and v of earlier calls, come before those of this one:
// present_k and present_v, absent unless wanted, are the past of the next. A decoder so computes
// one position at a time what the causal mask gives of all; in cross-attention, key and value may
// have no rows (m = 0) where the past holds those of the whole memory.
//
// The mask is of [batch, heads, n, p + m], p the keys of the past. With q_norm and k_norm each
// query and key of a head is normalised first (Henry et al., "Query-Key Normalization for
// Transformers", 2020; here by its root mean square, as in Qwen3). With a rope_theta, query i is
// rotated to position i + offset of the mask, key j to p + j, see rotate; keys of the past are
// taken as rotated, and present_k is.
//
// Keys of the layer's own are neither in the mask nor in k, v and the present; in the matrices of
// the attention they are the last columns, bias_k before the zeros. Dropout counts them first:
// column j of the attention's matrices is its key (own + j) mod (own + p + m). Throws InputError
// when the shapes do not agree, and as rotate does.
template <class T>
MultiHeadResult<T> multi_head(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value,
                              const MultiHeadParams<T>& params, const Mask& mask,
                              const AttentionSettings& settings, const Request& want = {},
                              const Past<T>* past = nullptr);

// How a layer rotates the queries and keys of a call; not at all without a rope_theta. The last
// `keys` of those of the mask are its own.
Rotations layer_rotations(std::optional<double> rope_theta, const Mask& mask, Index keys);

// [batch, n, heads d] <-> [batch, heads, n, d]
template <class T>
Tensor<T> split_heads(const Tensor<T>& packed, Index heads);
template <class T>
Tensor<T> merge_heads(const Tensor<T>& split);

}  // namespace attnlab
