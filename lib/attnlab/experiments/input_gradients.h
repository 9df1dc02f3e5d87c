#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/attention/scaled_dot_product_backward.h"
#include "attnlab/core/describe.h"
#include "attnlab/experiments/attention_inputs.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/position_options.h"

namespace attnlab {

// What the backward pass starts from.
struct GradientOptions {
  TensorSource grad_output;

  static constexpr auto fields() {
    using O = GradientOptions;
    return std::tuple(field("grad_output", &O::grad_output,
                            "gradient of a loss with respect to the output, of its shape; gives "
                            "those with respect to the inputs: grad_q, grad_k, grad_v, and with a "
                            "past, whose keys are not in grad_k, grad_past_k and grad_past_v",
                            {.unit = "FILE"}));
  }
};

// The gradient given, nothing without one. It has no say in the precision: asking for gradients
// never changes the output. Throws InputError.
std::optional<AnyTensor> read_grad_output(const TensorSource& source,
                                          std::vector<std::string>& notes);

// The gradients with respect to the inputs of one attention, each in the form of its input.
struct InputGradients {
  std::optional<AnyTensor> grad_q, grad_k, grad_v, grad_past_k, grad_past_v;

  static constexpr auto fields() {
    using R = InputGradients;
    return std::tuple(
        field("grad_q", &R::grad_q,
              "how the loss of --grad-output changes with q; J is the softmax Jacobian of a row",
              {.formula = "scale J(weights)(grad_output v^T) k", .shape = "[.., heads, n, d_k]"}),
        field("grad_k", &R::grad_k, "how the loss of --grad-output changes with k",
              {.formula = "scale (J(weights)(grad_output v^T))^T q",
               .shape = "[.., kv_heads, m, d_k]"}),
        field("grad_v", &R::grad_v, "how the loss of --grad-output changes with v",
              {.formula = "weights^T grad_output", .shape = "[.., kv_heads, m, d_v]"}),
        field("grad_past_k", &R::grad_past_k, "how it changes with past_k, where there is a past",
              {.shape = "[batch, kv_heads, p, d_k]"}),
        field("grad_past_v", &R::grad_past_v, "how it changes with past_v, where there is a past",
              {.shape = "[batch, kv_heads, p, d_v]"}));
  }
};

// The gradients that `want` names, rounded to `dtype`. grad_output [batch, heads, n, d_v]; keys of
// the past, the first of `inputs`, have gradients of their own. `inputs` are rotated already, and
// the gradients those of q and k before. Says in `notes` where one is not
// finite. Throws InputError as scaled_dot_product_backward.
template <class T>
InputGradients input_gradients(const AttentionInputs<T>& inputs, const Rotations& rotations,
                               const Tensor<T>& grad_output, const Mask& mask,
                               const AttentionSettings& settings, const HeadLayout& layout,
                               DType dtype, const Request& want, std::vector<std::string>& notes);

}  // namespace attnlab
