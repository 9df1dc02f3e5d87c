#include "attnlab/experiments/roles.h"

#include <fmt/format.h>

#include <cmath>

#include "attnlab/attention/multi_head.h"
#include "attnlab/core/error.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/layer_inputs.h"

namespace attnlab {
namespace {

// The source is read as the memory of the target, which is what it becomes.
constexpr LayerInputNames kNames = {
    .x = "target", .memory = "source", .n = "n_target", .m = "n_source"};

LayerInputs read_or_draw(const RolesOptions& options, std::vector<std::string>& notes) {
  if (options.source.empty() && options.target.empty()) {
    SizeOptions sizes;
    sizes.n = options.n_target.value_or(4);
    sizes.m = options.n_source.value_or(5);
    sizes.dtype = options.dtype;
    const Index d_model = options.d_model.value_or(8);
    return draw_layer_inputs(sizes, d_model, d_model, /*cross=*/true, options.run.seed, notes,
                             kNames);
  }
  if (options.source.empty() || options.target.empty()) {
    throw InputError("", options.source.empty() ? "source" : "target", "",
                     "is needed: give source and target, or none of them");
  }
  if (options.n_source || options.n_target || options.d_model) {
    const char* name = options.n_source ? "n_source" : options.n_target ? "n_target" : "d_model";
    const Index value = *(options.n_source   ? options.n_source
                          : options.n_target ? options.n_target
                                             : options.d_model);
    throw InputError("", name, std::to_string(value), "is for drawing without files");
  }
  LayerInputOptions inputs;
  inputs.x = options.target;
  inputs.memory = options.source;
  return read_layer_inputs(inputs, {}, notes, kNames);
}

template <class T>
class Model {
 public:
  Model(const RolesOptions& options, Index d_model, DType dtype)
      : options_(options), d_model_(d_model), dtype_(dtype) {}

  // One attention layer: `queries` [batch, n, d_model] attend to `memory` [batch, m, d_model].
  MultiHeadResult<T> attend(const Tensor<T>& queries, const Tensor<T>& memory, bool causal) {
    MultiHeadShape shape;
    shape.d_query = shape.d_key = shape.d_value = shape.d_output = d_model_;
    shape.heads = shape.kv_heads = options_.heads;
    shape.d_k = shape.d_v = d_model_ / options_.heads;
    MultiHeadParams<T> params =
        draw_multi_head<T>(shape, Init::xavier_uniform, 0, options_.run.seed, layers_++);
    round_params(params, dtype_);
    Mask mask(queries.shape()[0], options_.heads, queries.shape()[1], memory.shape()[1]);
    if (causal) mask.set_causal();
    AttentionSettings settings;
    settings.scale = 1 / std::sqrt(static_cast<double>(shape.d_k));
    settings.threads = options_.run.threads;
    return multi_head(queries, memory, memory, params, mask, settings, {"weights"});
  }

 private:
  const RolesOptions& options_;
  Index d_model_;
  DType dtype_;
  std::uint64_t layers_ = 0;
};

template <class T>
RolesResult roles_as(const RolesOptions& options, const LayerInputs& inputs, DType dtype) {
  const Tensor<T> source = with_batch<T>(*inputs.memory);
  const Tensor<T> target = with_batch<T>(*inputs.x);
  Model<T> model(options, inputs.x->shape()[-1], dtype);
  MultiHeadResult<T> encoder = model.attend(source, source, /*causal=*/false);
  MultiHeadResult<T> decoder = model.attend(target, target, /*causal=*/true);
  MultiHeadResult<T> cross = model.attend(decoder.output, encoder.output, /*causal=*/false);

  const HeadLayout layout = {.rank = inputs.x->shape().rank(), .packed = true};
  const auto weights = [&](MultiHeadResult<T>& layer) {
    return AnyTensor(layout.restore_scores(std::move(*layer.attention.weights))).cast(dtype);
  };
  const auto output = [&](MultiHeadResult<T>& layer) {
    return AnyTensor(layout.restore_rows(std::move(layer.output))).cast(dtype);
  };
  RolesResult result;
  result.encoder_weights = weights(encoder);
  result.decoder_weights = weights(decoder);
  result.cross_weights = weights(cross);
  result.encoder_output = output(encoder);
  result.decoder_output = output(decoder);
  result.cross_output = output(cross);
  return result;
}

}  // namespace

RolesResult roles(const RolesOptions& options, const Request& want) {
  std::vector<std::string> notes;
  LayerInputs inputs = read_or_draw(options, notes);
  const Index d_model = inputs.x->shape()[-1];
  if (inputs.memory->shape()[-1] != d_model) {
    throw InputError(
        "", "source", inputs.memory->shape().str(),
        fmt::format("need the width of target {}, {}", inputs.x->shape().str(), d_model));
  }
  if (d_model % options.heads != 0) {
    throw InputError("", "heads", std::to_string(options.heads),
                     fmt::format("d_model, {}, must be a multiple of the heads", d_model));
  }
  notes.push_back(fmt::format(
      "three layers of {} heads, xavier_uniform, drawn from seed {}; no residual connections, "
      "layer normalisation or feed-forward parts",
      options.heads, options.run.seed));
  const DType dtype = resolve_precision(options.dtype, {inputs.x->dtype(), inputs.memory->dtype()});
  round_inputs(inputs, dtype, notes, kNames);
  RolesResult result = visit_compute_type(dtype, [&](auto tag) {
    return roles_as<typename decltype(tag)::type>(options, inputs, dtype);
  });
  if (want.has("source")) result.source = inputs.memory;
  if (want.has("target")) result.target = inputs.x;
  result.notes = std::move(notes);
  return result;
}

}  // namespace attnlab
