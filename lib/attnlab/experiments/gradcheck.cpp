#include "attnlab/experiments/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attnlab/attention/scaled_dot_product_backward.h"
#include "attnlab/experiments/layer_check.h"
#include "attnlab/experiments/through_layer.h"

namespace attnlab {
namespace {

// What rounding alone may cost in a backward pass of a dtype.
double default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 1e-3;
    case DType::bfloat16:
      return 1e-2;
    case DType::float32:
      return 1e-5;
    default:
      return 1e-8;
  }
}

template <class T>
void check_gradients(const GradcheckOptions& options, RawAttentionInputs raw,
                     GradcheckResult& result) {
  const DType dtype = raw.dtype;
  const HeadLayout layout = raw.layout;
  const AttentionInputs<T> inputs = split_attention_inputs<T>(options.sizes, std::move(raw));
  const Shape &shape = inputs.q.shape(), &values = inputs.v.shape();
  const Mask mask = make_mask(options.mask, options.positions, shape[0], shape[1], shape[2],
                              values[2], inputs.past, result.notes);
  const Rotations rotations = rotations_of(options.positions, mask, inputs.past);
  AttentionSettings settings = attention_settings(options.scores, options.run, shape[3]);
  const AnyTensor grad_output = draw_normal({shape[0], shape[1], shape[2], values[3]},
                                            options.run.seed, Stream::sample_grad_output);
  AttentionGradients<T> gradients =
      scaled_dot_product_backward(rotated(inputs.q, rotations.queries, settings.threads),
                                  rotated(inputs.k, rotations.keys, settings.threads), inputs.v,
                                  grad_output.cast<T>(), mask, settings);
  gradients.grad_q =
      rotated_back(*std::move(gradients.grad_q), rotations.queries, settings.threads);
  gradients.grad_k = rotated_back(*std::move(gradients.grad_k), rotations.keys, settings.threads);

  // The differences take the threads; every forward pass in them has one.
  settings.threads = 1;
  const Tensor<double> cotangent = grad_output.cast<double>();
  const Tensor<double> q = AnyTensor(inputs.q).cast<double>();
  const Tensor<double> k = AnyTensor(inputs.k).cast<double>();
  const Tensor<double> v = AnyTensor(inputs.v).cast<double>();
  const auto check = [&](std::string_view name, std::optional<Tensor<T>>& gradient,
                         const Tensor<double>& at, const auto& output) {
    const Tensor<double> rounded =
        AnyTensor(layout.restore_output(std::move(*gradient))).cast(dtype).template cast<double>();
    result.rows.push_back(check_by_differences(
        output, at, cotangent, options.run.threads, [&](Differences differences) {
          // In the user's form, for the index of the largest error.
          differences.gradient = layout.restore_output(std::move(differences.gradient));
          return check_gradient(name, rounded, differences, result.tolerance);
        }));
  };
  const auto forward = [&](const Tensor<double>& queries, const Tensor<double>& keys,
                           const Tensor<double>& carried) {
    return scaled_dot_product(rotated(queries, rotations.queries, 1),
                              rotated(keys, rotations.keys, 1), carried, mask, settings)
        .output;
  };
  check("q", gradients.grad_q, q,
        [&](const Tensor<double>& moved) { return forward(moved, k, v); });
  check("k", gradients.grad_k, k,
        [&](const Tensor<double>& moved) { return forward(q, moved, v); });
  check("v", gradients.grad_v, v,
        [&](const Tensor<double>& moved) { return forward(q, k, moved); });
}

void check_attention(const GradcheckOptions& options, GradcheckResult& result) {
  require_defaults(options.layer, "is for a layer: give its input x, params, d_model or role too");
  RawAttentionInputs raw = read_attention_inputs(options.query_key, options.value, options.sizes,
                                                 options.run.seed, result.notes);
  result.tolerance = options.tolerance.value_or(default_tolerance(raw.dtype));
  visit_compute_type(raw.dtype, [&](auto tag) {
    check_gradients<typename decltype(tag)::type>(options, std::move(raw), result);
  });
}

void check_through_layer(const GradcheckOptions& options, GradcheckResult& result) {
  constexpr std::string_view kRule = "give either q, k and v or a layer and its inputs";
  require_defaults(options.query_key, kRule);
  require_defaults(ValueOptions{options.value.v, {}}, kRule);
  MultiheadOptions through = through_layer(options);
  through.past = options.value.past;
  MultiheadResult layer = multihead(through, checked_matrices());
  result.notes = std::move(layer.notes);
  result.tolerance = options.tolerance.value_or(default_tolerance(layer.output->dtype()));
  result.rows = check_layer(layer, result.tolerance, options.run, result.notes);
  result.layer = std::move(layer.layer);
}

}  // namespace

GradcheckResult gradcheck(const GradcheckOptions& options, const Request& /*want*/) {
  GradcheckResult result;
  if (names_a_layer(options)) {
    check_through_layer(options, result);
  } else {
    check_attention(options, result);
  }
  for (const GradientCheck& row : result.rows) {
    if (!(row.resolution > result.tolerance * row.norm)) continue;
    result.notes.push_back(
        fmt::format("{}: differences cannot tell errors below {:.2g}, more than the tolerance of "
                    "a gradient of norm {:.2g}",
                    row.tensor, row.resolution, row.norm));
  }
  result.passed = std::all_of(result.rows.begin(), result.rows.end(),
                              [](const GradientCheck& row) { return row.passed; });
  return result;
}

}  // namespace attnlab
