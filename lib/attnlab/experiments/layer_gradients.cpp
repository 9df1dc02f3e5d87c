#include "attnlab/experiments/layer_gradients.h"

#include <array>

#include "attnlab/experiments/attention_matrices.h"

namespace attnlab {
namespace {

// Those that are not of an input, whose names are the same on both sides.
constexpr std::array<std::string_view, 14> kWeights = {
    "grad_w_q",    "grad_b_q",    "grad_w_k",    "grad_b_k",    "grad_w_v",
    "grad_b_v",    "grad_w_o",    "grad_b_o",    "grad_q_norm", "grad_k_norm",
    "grad_past_k", "grad_past_v", "grad_bias_k", "grad_bias_v"};

template <class T>
Tensor<T> sum(Tensor<T> a, const Tensor<T>& b) {
  for (Index i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace

Request gradients_computed(const LayerInputs& inputs, const Request& want) {
  Request computed;
  const auto pass = [&](std::string_view name, std::initializer_list<std::string_view> parts) {
    if (!want.has(name)) return;
    for (const std::string_view part : parts) computed.add(part);
  };
  if (inputs.memory) {
    pass("grad_x", {"grad_query"});
    pass("grad_memory", {"grad_key", "grad_value"});
  } else if (inputs.x) {
    pass("grad_x", {"grad_query", "grad_key", "grad_value"});
  } else {
    for (const auto name : {"grad_query", "grad_key", "grad_value"}) pass(name, {name});
  }
  for (const std::string_view name : kWeights) pass(name, {name});
  return computed;
}

template <class T>
LayerGradients layer_gradients(const LayerInputs& inputs, MultiHeadGradients<T> gradients,
                               const HeadLayout& layout, DType dtype, const Request& want,
                               std::vector<std::string>& notes) {
  LayerGradients result;
  const auto keep = [&](std::string_view name, Tensor<T> gradient,
                        std::optional<AnyTensor>& field) {
    field = AnyTensor(std::move(gradient)).cast(dtype);
    note_non_finite(name, *field, notes);
  };
  const auto keep_rows = [&](std::string_view name, Tensor<T> rows,
                             std::optional<AnyTensor>& field) {
    keep(name, layout.restore_rows(std::move(rows)), field);
  };
  const auto keys_and_values = [&] {
    return sum(*std::move(gradients.grad_key), *gradients.grad_value);
  };
  if (want.has("grad_x") && inputs.x) {
    Tensor<T> rows = *std::move(gradients.grad_query);
    if (!inputs.memory) rows = sum(std::move(rows), keys_and_values());
    keep_rows("grad_x", std::move(rows), result.grad_x);
  }
  if (want.has("grad_memory") && inputs.memory) {
    keep_rows("grad_memory", keys_and_values(), result.grad_memory);
  }
  const auto keep_input = [&](std::string_view name, std::optional<Tensor<T>>& rows,
                              std::optional<AnyTensor>& field) {
    if (want.has(name) && rows && !inputs.x) keep_rows(name, *std::move(rows), field);
  };
  keep_input("grad_query", gradients.grad_query, result.grad_query);
  keep_input("grad_key", gradients.grad_key, result.grad_key);
  keep_input("grad_value", gradients.grad_value, result.grad_value);

  const auto keep_weight = [&](std::string_view name, std::optional<Tensor<T>>& gradient,
                               std::optional<AnyTensor>& field) {
    if (gradient) keep(name, *std::move(gradient), field);
  };
  keep_weight("grad_w_q", gradients.grad_w_q, result.grad_w_q);
  keep_weight("grad_b_q", gradients.grad_b_q, result.grad_b_q);
  keep_weight("grad_w_k", gradients.grad_w_k, result.grad_w_k);
  keep_weight("grad_b_k", gradients.grad_b_k, result.grad_b_k);
  keep_weight("grad_w_v", gradients.grad_w_v, result.grad_w_v);
  keep_weight("grad_b_v", gradients.grad_b_v, result.grad_b_v);
  keep_weight("grad_w_o", gradients.grad_w_o, result.grad_w_o);
  keep_weight("grad_b_o", gradients.grad_b_o, result.grad_b_o);
  keep_weight("grad_q_norm", gradients.grad_q_norm, result.grad_q_norm);
  keep_weight("grad_k_norm", gradients.grad_k_norm, result.grad_k_norm);
  keep_weight("grad_past_k", gradients.grad_past_k, result.grad_past_k);
  keep_weight("grad_past_v", gradients.grad_past_v, result.grad_past_v);
  keep_weight("grad_bias_k", gradients.grad_bias_k, result.grad_bias_k);
  keep_weight("grad_bias_v", gradients.grad_bias_v, result.grad_bias_v);
  return result;
}

template LayerGradients layer_gradients(const LayerInputs&, MultiHeadGradients<float>,
                                        const HeadLayout&, DType, const Request&,
                                        std::vector<std::string>&);
template LayerGradients layer_gradients(const LayerInputs&, MultiHeadGradients<double>,
                                        const HeadLayout&, DType, const Request&,
                                        std::vector<std::string>&);

}  // namespace attnlab
