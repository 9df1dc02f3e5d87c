#include "attnlab/experiments/attend.h"

#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/experiments/save_case.h"

namespace attnlab {
namespace {

template <class T>
AttendResult attend_as(const AttendOptions& options, RawAttentionInputs raw, Request want,
                       std::vector<std::string> notes) {
  want = steps_taken(std::move(want), options.scores, options.mask, options.positions);
  if (!raw.past) {
    want.leave_out_step("present_k");
    want.leave_out_step("present_v");
  }
  const DType dtype = raw.dtype;
  const HeadLayout layout = raw.layout;
  const std::optional<AnyTensor> given_grad_output =
      read_grad_output(options.gradients.grad_output, notes);
  AttendResult result;
  const auto keep = [&](std::string_view name, const AnyTensor& tensor,
                        std::optional<AnyTensor>& field) {
    if (want.has(name)) field = tensor.cast(dtype);
  };
  keep("q", raw.q, result.q);
  keep("k", raw.k, result.k);
  keep("v", raw.v, result.v);

  AttentionInputs<T> inputs = split_attention_inputs<T>(options.sizes, std::move(raw));
  const Shape& q = inputs.q.shape();
  const Mask mask = make_mask(options.mask, options.positions, q[0], q[1], q[2],
                              inputs.k.shape()[2], inputs.past, notes);
  const Rotations rotations = rotate_inputs(inputs, options.positions, mask, options.run.threads);
  const AttentionSettings settings = attention_settings(options.scores, options.run, q[3]);
  std::optional<Tensor<T>> grad_output;
  if (given_grad_output) {
    grad_output = layout.split_output(given_grad_output->cast<T>(),
                                      {q[0], q[1], q[2], inputs.v.shape()[3]}, "grad_output");
  }
  AttentionResult<T> attention =
      scaled_dot_product(inputs.q, inputs.k, inputs.v, mask, settings, want);

  note_zero_rows(attention.empty_rows, attention.overflowed_rows, notes);
  result.attention = attention_matrices(attention, layout, dtype);
  result.output = AnyTensor(layout.restore_output(std::move(attention.output))).cast(dtype);
  note_non_finite("output", *result.output, notes);
  if (grad_output) {
    result.gradients = input_gradients(inputs, rotations, *grad_output, mask, settings, layout,
                                       dtype, want, notes);
  }
  if (want.has("rotated_q")) {
    result.rotated_q = AnyTensor(layout.restore_output(inputs.q)).cast(dtype);
  }
  if (want.has("rotated_k")) {
    const Index given = inputs.k.shape()[2] - inputs.past;
    result.rotated_k =
        AnyTensor(layout.restore_output(keys_of(inputs.k, inputs.past, given))).cast(dtype);
  }
  const auto keep_present = [&](std::string_view name, Tensor<T>& tensor,
                                std::optional<AnyTensor>& field) {
    if (want.has(name)) field = AnyTensor(layout.restore_present(std::move(tensor))).cast(dtype);
  };
  keep_present("present_k", inputs.k, result.present_k);
  keep_present("present_v", inputs.v, result.present_v);
  result.empty_rows = attention.empty_rows;
  result.notes = std::move(notes);
  return result;
}

}  // namespace

AttendResult attend(const AttendOptions& options, const Request& want) {
  if (!options.keep.save_case.empty()) return attend_and_keep(options, want);
  std::vector<std::string> notes;
  RawAttentionInputs raw = read_attention_inputs(options.query_key, options.value, options.sizes,
                                                 options.run.seed, notes);
  return visit_compute_type(raw.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return attend_as<T>(options, std::move(raw), want, std::move(notes));
  });
}

}  // namespace attnlab
