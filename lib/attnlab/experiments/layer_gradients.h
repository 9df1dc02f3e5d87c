#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/attention/multi_head_backward.h"
#include "attnlab/core/describe.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/layer_inputs.h"

namespace attnlab {

// What the backward pass of a layer starts from.
struct LayerGradientOptions {
  TensorSource grad_output;

  static constexpr auto fields() {
    using O = LayerGradientOptions;
    return std::tuple(field(
        "grad_output", &O::grad_output,
        "gradient of a loss with respect to the output, of its shape; gives those with respect to "
        "the inputs, weights and biases: grad_x and grad_memory (or grad_query, grad_key, "
        "grad_value), grad_w_q, grad_b_q, ..., and of a past grad_past_k and grad_past_v",
        {.unit = "FILE"}));
  }
};

// The gradients with respect to what a layer is given, each in the form of what it belongs to. In
// the formulas grad_q, grad_k and grad_v are those of attend, the heads merged.
struct LayerGradients {
  std::optional<AnyTensor> grad_x, grad_memory, grad_query, grad_key, grad_value;
  std::optional<AnyTensor> grad_w_q, grad_b_q, grad_w_k, grad_b_k, grad_w_v, grad_b_v;
  std::optional<AnyTensor> grad_w_o, grad_b_o, grad_q_norm, grad_k_norm, grad_past_k, grad_past_v;
  std::optional<AnyTensor> grad_bias_k, grad_bias_v;

  static constexpr auto fields() {
    using R = LayerGradients;
    return std::tuple(
        field(
            "grad_x", &R::grad_x,
            "how the loss of --grad-output changes with x, by every way from x to it: as query, "
            "and without a memory as key and value",
            {.formula = "grad_q w_q^T + grad_k w_k^T + grad_v w_v^T", .shape = "[.., n, d_model]"}),
        field("grad_memory", &R::grad_memory,
              "how the loss of --grad-output changes with the memory, where there is one",
              {.formula = "grad_k w_k^T + grad_v w_v^T", .shape = "[.., m, d_model]"}),
        field("grad_query", &R::grad_query,
              "how the loss of --grad-output changes with query, where it is given apart",
              {.formula = "grad_q w_q^T", .shape = "[.., n, d_query]"}),
        field("grad_key", &R::grad_key,
              "how the loss of --grad-output changes with key, where it is given apart",
              {.formula = "grad_k w_k^T", .shape = "[.., m, d_key]"}),
        field("grad_value", &R::grad_value,
              "how the loss of --grad-output changes with value, where it is given apart",
              {.formula = "grad_v w_v^T", .shape = "[.., m, d_value]"}),
        field("grad_w_q", &R::grad_w_q, "how the loss of --grad-output changes with w_q",
              {.formula = "query^T grad_q", .shape = "[d_query, heads d_k]"}),
        field("grad_b_q", &R::grad_b_q,
              "how the loss of --grad-output changes with b_q, where there are biases",
              {.formula = "sum of the rows of grad_q", .shape = "[heads d_k]"}),
        field("grad_w_k", &R::grad_w_k, "how the loss of --grad-output changes with w_k",
              {.formula = "key^T grad_k", .shape = "[d_key, kv_heads d_k]"}),
        field("grad_b_k", &R::grad_b_k,
              "how the loss of --grad-output changes with b_k: not at all, but for rounding, "
              "without a softcap, a past, a norm, a rotation or keys of the layer's own, for b_k "
              "moves all scores of a row alike",
              {.formula = "sum of the rows of grad_k", .shape = "[kv_heads d_k]"}),
        field("grad_w_v", &R::grad_w_v, "how the loss of --grad-output changes with w_v",
              {.formula = "value^T grad_v", .shape = "[d_value, kv_heads d_v]"}),
        field("grad_b_v", &R::grad_b_v,
              "how the loss of --grad-output changes with b_v, where there are biases",
              {.formula = "sum of the rows of grad_v", .shape = "[kv_heads d_v]"}),
        field("grad_w_o", &R::grad_w_o, "how the loss of --grad-output changes with w_o",
              {.formula = "concat^T grad_output", .shape = "[heads d_v, d_output]"}),
        field("grad_b_o", &R::grad_b_o,
              "how the loss of --grad-output changes with b_o, where there are biases",
              {.formula = "sum of the rows of grad_output", .shape = "[d_output]"}),
        field("grad_q_norm", &R::grad_q_norm,
              "how the loss of --grad-output changes with q_norm, where queries are normalised",
              {.shape = "[d_k]"}),
        field("grad_k_norm", &R::grad_k_norm,
              "how the loss of --grad-output changes with k_norm, where keys are normalised",
              {.shape = "[d_k]"}),
        field("grad_past_k", &R::grad_past_k,
              "how the loss of --grad-output changes with past_k, where there is a past",
              {.shape = "[batch, kv_heads, p, d_k]"}),
        field("grad_past_v", &R::grad_past_v,
              "how the loss of --grad-output changes with past_v, where there is a past",
              {.shape = "[batch, kv_heads, p, d_v]"}),
        field("grad_bias_k", &R::grad_bias_k,
              "how the loss of --grad-output changes with bias_k, where the layer has it",
              {.shape = "[kv_heads d_k]"}),
        field("grad_bias_v", &R::grad_bias_v,
              "how the loss of --grad-output changes with bias_v, where the layer has it",
              {.shape = "[kv_heads d_v]"}));
  }
};

// The gradients to compute for those that `want` names: x, for one, is query, key and value where
// there is no memory.
Request gradients_computed(const LayerInputs& inputs, const Request& want);

// The gradients that `want` names, those of an input that is given as several added up, rounded to
// `dtype`. `gradients` holds what gradients_computed says. Says in `notes` where one is not finite.
template <class T>
LayerGradients layer_gradients(const LayerInputs& inputs, MultiHeadGradients<T> gradients,
                               const HeadLayout& layout, DType dtype, const Request& want,
                               std::vector<std::string>& notes);

}  // namespace attnlab
