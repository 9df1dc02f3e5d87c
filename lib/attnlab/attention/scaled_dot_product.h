#pragma once

#include <cstdint>
#include <optional>

#include "attnlab/attention/mask.h"
#include "attnlab/core/request.h"
#include "attnlab/core/tensor.h"

namespace attnlab {

// How the attention is computed: `full` is the plain path that follows the formula step by step,
// `tiled` the fast one, which keeps no [n, m] matrix; automatic is tiled.
enum class Kernel { automatic, tiled, full };

struct AttentionSettings {
  double scale = 1;                              // the factor on q.k, 1/sqrt(d_k) in the paper
  std::optional<double> softcap = std::nullopt;  // C tanh(scores / C), before the mask
  double dropout = 0;  // share of the weights multiplied by 0, the others divided by 1 - dropout
  std::uint64_t seed = 0;  // of the dropout
  Kernel kernel = Kernel::automatic;
  Index threads = 0;  // 0 = all cores; the result does not depend on it
};

// The matrices of one call, in the order they are computed. Those not asked for are absent.
template <class T>
struct AttentionResult {
  std::optional<Tensor<T>> raw_scores;  // q.k                                 [batch, heads, n, m]
  std::optional<Tensor<T>> scores;      // scale q.k                           [batch, heads, n, m]
  std::optional<Tensor<T>>
      capped_scores;  // C tanh(scores / C)                  [batch, heads, n, m]
  std::optional<Tensor<T>>
      masked_scores;                 // bias added, -infinity where masked  [batch, heads, n, m]
  std::optional<Tensor<T>> weights;  // softmax over the keys, before dropout [batch, heads, n, m]
  Tensor<T> output;                  // weights V                           [batch, heads, n, d_v]
  Index empty_rows = 0;  // rows of [batch, heads, n] that may attend to no key: weights, output 0
  // Rows that see keys, but with scores that are all -infinity: weights and output 0 too.
  Index overflowed_rows = 0;
};

// Scaled dot-product attention, softmax(scale Q K^T) V (Vaswani et al., "Attention Is All You
// Need", 2017, equation 1), for each batch entry and head.
//
// q [batch, heads, n, d_k], k [batch, kv_heads, m, d_k], v [batch, kv_heads, m, d_v]; heads a
// multiple of kv_heads, query head h using key/value head h / (heads / kv_heads) (Ainslie et al.,
// "GQA", 2023). n, m or batch may be 0; d_k may not. Masked entries are selected, not multiplied:
// what lies under the mask, NaN included, never matters. NaN and infinities outside it propagate
// as in the formula, but a row whose scores are all -infinity has weights 0 wherever they come
// from.
//
// Weight (b, h, i, j) is dropped when word j % 4 of block j / 4 of trial (b heads + h) n + i of
// stream `dropout` falls below the share.
//
// `want` names the optional matrices of AttentionResult to keep; it never changes the output.
// Memory without any of them: linear in n and m.
//
// Throws InputError naming the tensors when shapes do not agree, "scale", "softcap" or "dropout"
// when it is outside its range in T, and the matrices wanted when there is no memory for them.
template <class T>
AttentionResult<T> scaled_dot_product(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                      const Mask& mask, const AttentionSettings& settings,
                                      const Request& want = {});

}  // namespace attnlab
