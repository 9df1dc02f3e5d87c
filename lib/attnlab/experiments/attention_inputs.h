#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/past_options.h"
#include "attnlab/experiments/position_options.h"
#include "attnlab/experiments/precision.h"
#include "attnlab/experiments/size_options.h"

namespace attnlab {

// Queries and keys: from files, or drawn.
struct QueryKeyOptions {
  TensorSource q, k;

  static constexpr auto fields() {
    using O = QueryKeyOptions;
    return std::tuple(
        field("q", &O::q, "queries [n, d_k], [heads, n, d_k] or [batch, heads, n, d_k]",
              {.unit = "FILE"}),
        field("k", &O::k, "keys [.., kv_heads, m, d_k]", {.unit = "FILE"}));
  }
};

// Values, and the past of a decoder.
struct ValueOptions {
  TensorSource v;
  PastOptions past;

  static constexpr auto fields() {
    using O = ValueOptions;
    return std::tuple(field("v", &O::v, "values [.., kv_heads, m, d_v]", {.unit = "FILE"}),
                      group("Past", &O::past));
  }
};

// The tensors as read or drawn.
struct RawAttentionInputs {
  AnyTensor q, k, v;
  std::optional<PastTensors> past;
  DType dtype = DType::float32;  // of the results
  HeadLayout layout;             // of Q
  bool drawn = false;
};

// Reads or draws Q, K and V and rounds them to the dtype of the results. Throws InputError, also
// when there is not the memory for all that is drawn.
RawAttentionInputs read_attention_inputs(const QueryKeyOptions& query_key,
                                         const ValueOptions& value, const SizeOptions& sizes,
                                         std::uint64_t seed, std::vector<std::string>& notes);

// The same without values, for what needs none: V is of width 0.
RawAttentionInputs read_query_key(const QueryKeyOptions& query_key, const SizeOptions& sizes,
                                  std::uint64_t seed, std::vector<std::string>& notes);

// The same as [batch, heads, n, d], the past put before K and V.
template <class T>
struct AttentionInputs {
  Tensor<T> q, k, v;
  bool has_past = false;
  Index past = 0;  // keys that come from the past
};

// Throws InputError when heads, past and present do not agree.
template <class T>
AttentionInputs<T> split_attention_inputs(const SizeOptions& sizes, RawAttentionInputs raw);

// Rotates Q and K where the options say so, but for the keys of the past, and returns how.
template <class T>
Rotations rotate_inputs(AttentionInputs<T>& inputs, const PositionOptions& options,
                        const Mask& mask, Index threads);

}  // namespace attnlab
