#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/precision.h"

namespace attnlab {

// Queries, keys and values: from files, or drawn.
struct AttentionInputOptions {
  TensorSource q, k, v, past_k, past_v;
  std::optional<Index> batch, heads, kv_heads, n, m, d_k, d_v;
  Precision dtype = Precision::automatic;

  static constexpr auto fields() {
    using O = AttentionInputOptions;
    return std::tuple(
        field("q", &O::q, "queries [n, d_k], [heads, n, d_k] or [batch, heads, n, d_k]",
              {.unit = "FILE"}),
        field("k", &O::k, "keys [.., kv_heads, m, d_k]", {.unit = "FILE"}),
        field("v", &O::v, "values [.., kv_heads, m, d_v]", {.unit = "FILE"}),
        field("past_k", &O::past_k, "keys put before K, [batch, kv_heads, p, d_k]",
              {.unit = "FILE"}),
        field("past_v", &O::past_v, "values put before V, [batch, kv_heads, p, d_v]",
              {.unit = "FILE"}),
        field("heads", &O::heads,
              "query heads: splits the last axis of a Q of rank 2 or 3, and the output comes back "
              "merged; without files, heads to draw",
              {.range = at_least<Index>(1)}),
        field("kv_heads", &O::kv_heads, "key and value heads, as many as query heads unless given",
              {.range = at_least<Index>(1)}),
        field("batch", &O::batch, "batch entries to draw", {.range = at_least<Index>(1)}),
        field("n", &O::n, "queries to draw (6 unless given)", {.range = at_least<Index>(0)}),
        field("m", &O::m, "keys to draw (as many as queries unless given)",
              {.range = at_least<Index>(0)}),
        field("d_k", &O::d_k, "width of a query and key to draw (8 unless given)",
              {.range = at_least<Index>(1)}),
        field("d_v", &O::d_v, "width of a value to draw (d_k unless given)",
              {.range = at_least<Index>(1)}),
        field(
            "dtype", &O::dtype,
            "precision; auto follows the files, text is float64, drawn tensors are float32; 16-bit "
            "types are computed in float32 and rounded once"));
  }
};

// The tensors as read or drawn.
struct RawAttentionInputs {
  AnyTensor q, k, v;
  std::optional<AnyTensor> past_k, past_v;
  DType dtype = DType::float32;  // of the results
  HeadLayout layout;             // of Q
};

// Reads or draws Q, K and V; `need_v` is false where only weights are wanted, and an absent V is
// then one of width 0. Throws InputError.
RawAttentionInputs read_attention_inputs(const AttentionInputOptions& options, std::uint64_t seed,
                                         bool need_v, std::vector<std::string>& notes);

// The same as [batch, heads, n, d], the past put before K and V.
template <class T>
struct AttentionInputs {
  Tensor<T> q, k, v;
  Index past = 0;  // keys that come from the past
};

// Throws InputError when heads, past and present do not agree.
template <class T>
AttentionInputs<T> split_attention_inputs(const AttentionInputOptions& options,
                                          RawAttentionInputs raw);

}  // namespace attnlab
