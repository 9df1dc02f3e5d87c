#include "attnlab/experiments/input_gradients.h"

#include "attnlab/experiments/attention_matrices.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
std::optional<AnyTensor> read_grad_output(const TensorSource& source,
                                          std::vector<std::string>& notes) {
  if (source.empty()) return std::nullopt;
  return read_tensor(source, "grad_output", notes);
}

template <class T>
InputGradients input_gradients(const AttentionInputs<T>& inputs, const Rotations& rotations,
                               const Tensor<T>& grad_output, const Mask& mask,
                               const AttentionSettings& settings, const HeadLayout& layout,
                               DType dtype, const Request& want, std::vector<std::string>& notes) {
  Request computed;
  if (want.has("grad_q")) computed.add("grad_q");
  if (want.has("grad_k") || want.has("grad_past_k")) computed.add("grad_k");
  if (want.has("grad_v") || want.has("grad_past_v")) computed.add("grad_v");
  AttentionGradients<T> gradients = scaled_dot_product_backward(
      inputs.q, inputs.k, inputs.v, grad_output, mask, settings, computed);
  const auto turn_back = [&](std::optional<Tensor<T>>& gradient,
                             const std::optional<Rotary>& rotary) {
    if (gradient) gradient = rotated_back(*std::move(gradient), rotary, settings.threads);
  };
  turn_back(gradients.grad_q, rotations.queries);
  turn_back(gradients.grad_k, rotations.keys);

  InputGradients result;
  const auto keep = [&](std::string_view name, Tensor<T> gradient,
                        std::optional<AnyTensor>& field) {
    field = AnyTensor(std::move(gradient)).cast(dtype);
    note_non_finite(name, *field, notes);
  };
  if (want.has("grad_q")) {
    keep("grad_q", layout.restore_output(std::move(*gradients.grad_q)), result.grad_q);
  }
  // The gradient of all keys, in the part of the given ones and that of the past.
  const auto keep_keys = [&](std::string_view name, std::string_view past_name,
                             const std::optional<Tensor<T>>& gradient,
                             std::optional<AnyTensor>& field,
                             std::optional<AnyTensor>& past_field) {
    if (!gradient) return;
    const Index past = inputs.past, given = gradient->shape()[2] - past;
    if (want.has(name)) keep(name, layout.restore_output(keys_of(*gradient, past, given)), field);
    if (want.has(past_name) && inputs.has_past) {
      keep(past_name, layout.restore_present(keys_of(*gradient, 0, past)), past_field);
    }
  };
  keep_keys("grad_k", "grad_past_k", gradients.grad_k, result.grad_k, result.grad_past_k);
  keep_keys("grad_v", "grad_past_v", gradients.grad_v, result.grad_v, result.grad_past_v);
  return result;
}

template InputGradients input_gradients(const AttentionInputs<float>&, const Rotations&,
                                        const Tensor<float>&, const Mask&, const AttentionSettings&,
                                        const HeadLayout&, DType, const Request&,
                                        std::vector<std::string>&);
template InputGradients input_gradients(const AttentionInputs<double>&, const Rotations&,
                                        const Tensor<double>&, const Mask&,
                                        const AttentionSettings&, const HeadLayout&, DType,
                                        const Request&, std::vector<std::string>&);

}  // namespace attnlab
