#include "attnlab/experiments/multihead.h"

#include <fmt/format.h>

#include <filesystem>

#include "attnlab/core/error.h"
#include "attnlab/experiments/input_gradients.h"
#include "attnlab/experiments/layer_inputs.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/tensor_format.h"

namespace attnlab {
namespace {

// What the role asks of the inputs and the mask, checked against what was given.
struct Use {
  bool cross = false;
  bool causal = false;
  bool past_alone = false;  // the keys of the whole memory are those of the past
};

Use use_of(const MultiheadOptions& options) {
  const bool memory = !options.inputs.memory.empty();
  const bool apart = !options.inputs.query.empty();
  const bool causal = options.mask.causal.value_or(false);
  const auto refuse = [&](std::string_view rule) {
    throw InputError("", "role", kChoiceNames<Role>[static_cast<std::size_t>(options.role)], rule);
  };
  switch (options.role) {
    case Role::automatic:
      return {.cross = memory || apart, .causal = causal};
    case Role::encoder:
      if (memory || apart) refuse("attends to x itself: give x alone");
      if (causal) refuse("sees the whole sequence; causal is the role decoder");
      return {};
    case Role::decoder:
      if (memory || apart) refuse("attends to x itself: give x alone");
      if (options.mask.causal == false) {
        throw InputError("", "causal", "false",
                         "the role decoder is causal: leave one of them out");
      }
      return {.causal = true};
    case Role::cross:
      break;
  }
  const bool past = !options.past.k.empty();
  if (!memory && !apart && !past && !options.inputs.x.empty()) {
    refuse("needs a memory, or the past keys and values of one");
  }
  const bool past_alone = past && !memory && !apart;
  if (past_alone && options.sizes.m) {
    throw InputError("", "m", std::to_string(*options.sizes.m),
                     "is of a memory: without one all keys are those of the past");
  }
  return {.cross = true, .causal = causal, .past_alone = past_alone};
}

// The heads do not divide d_model: the one of them that was given is to blame.
[[noreturn]] void refuse_heads(const LayerOptions& options, const SizeOptions& sizes,
                               const LayerInputs* inputs, const MultiHeadShape& shape) {
  const std::string rule =
      fmt::format("need a multiple of the {} heads, or d_k given", shape.heads);
  if (sizes.heads) {
    throw InputError("", "heads", std::to_string(shape.heads),
                     fmt::format("d_model, {}, must be a multiple of the heads, or d_k be given",
                                 shape.d_output));
  }
  if (options.d_model || inputs == nullptr) {
    throw InputError("", "d_model", std::to_string(shape.d_output), rule);
  }
  throw InputError("", inputs->x ? "x" : "query", fmt::format("width {}", shape.d_output), rule);
}

// The widths that a layer to be drawn has.
MultiHeadShape drawn_shape(const LayerOptions& options, const SizeOptions& sizes,
                           const LayerInputs* inputs) {
  const auto width = [&](const AnyTensor& tensor) { return tensor.shape()[-1]; };
  MultiHeadShape shape;
  shape.d_query = inputs != nullptr ? width(inputs->queries()) : options.d_model.value_or(8);
  shape.d_key = inputs != nullptr ? width(inputs->keys()) : shape.d_query;
  shape.d_value = inputs != nullptr ? width(inputs->values()) : shape.d_query;
  shape.d_output = options.d_model.value_or(shape.d_query);
  shape.heads = sizes.heads.value_or(2);
  shape.kv_heads = sizes.kv_heads.value_or(shape.heads);
  require_divisor("kv_heads", shape.kv_heads, "heads", shape.heads);
  if (!sizes.d_k && shape.d_output % shape.heads != 0) refuse_heads(options, sizes, inputs, shape);
  shape.d_k = sizes.d_k.value_or(shape.d_output / shape.heads);
  shape.d_v = sizes.d_v.value_or(shape.d_k);
  shape.bias = options.bias;
  shape.qk_norm = options.qk_norm;
  return shape;
}

// What can be said before anything is read.
void check_layer_options(const LayerOptions& options) {
  const std::string extension = std::filesystem::path(options.params.path).extension().string();
  const auto format = format_of_name(options.params.path);
  if (!extension.empty() && format != TensorFormat::safetensors && format != TensorFormat::npz &&
      format != TensorFormat::json) {
    throw InputError("", "params", options.params.path, "need a .safetensors, .npz or .json file");
  }
  if (options.params.empty() && !options.prefix.empty()) {
    throw InputError("", "prefix", options.prefix, "needs params: it is of names in that file");
  }
  if (options.params.empty() && options.layer) {
    throw InputError("", "layer", std::to_string(*options.layer),
                     "needs params: it is of layers in that file");
  }
  if (options.params.empty() && options.params_layout != ParamsLayout::automatic) {
    throw InputError("", "params_layout",
                     kChoiceNames<ParamsLayout>[static_cast<std::size_t>(options.params_layout)],
                     "needs params: it is the layout of that file");
  }
  if (options.save_params.empty()) return;
  if (!options.save_params.path.ends_with(".safetensors")) {
    throw InputError("", "save_params", options.save_params.path, "need a .safetensors file");
  }
  check_writable(options.save_params.path, "save_params");
}

void require_drawing(const LayerOptions& options) {
  const auto refuse = [](std::string_view name, std::string_view value) {
    throw InputError("", name, value, "is for drawing a layer; the params file decides it");
  };
  if (options.bias) refuse("bias", "true");
  if (options.qk_norm) refuse("qk_norm", "true");
  if (options.init != Init::xavier_uniform) refuse("init", "normal");
  if (options.std) refuse("std", fmt::format("{}", *options.std));
}

void require_width(std::string_view option, std::optional<Index> given, Index actual) {
  if (!given || *given == actual) return;
  throw InputError("", option, std::to_string(*given),
                   fmt::format("the params file has {}", actual));
}

// Its errors are those of the file.
template <class T>
MultiHeadShape shape_of(const MultiHeadParams<T>& params, const std::string& path) {
  try {
    return params.shape();
  } catch (const InputError& error) {
    throw InputError(path, error.field(), error.value(), error.rule());
  }
}

template <class T>
MultiHeadParams<T> read_params(const LayerFile& file, const LayerOptions& options,
                               const SizeOptions& sizes) {
  require_drawing(options);
  const std::optional<Index> heads = sizes.heads ? sizes.heads : file.heads();
  if (!heads) {
    throw InputError("", "heads", "", "is needed: the params file does not say how many it has");
  }
  const Index kv_heads = sizes.kv_heads.value_or(file.kv_heads(*heads));
  if (*heads % kv_heads != 0) {
    if (sizes.kv_heads) require_divisor("kv_heads", kv_heads, "heads", *heads);
    throw InputError("", "heads", std::to_string(*heads),
                     fmt::format("need a multiple of the {} kv_heads that {} says it has", kv_heads,
                                 options.params.path));
  }
  MultiHeadParams<T> params = file.params<T>(*heads, kv_heads);
  const MultiHeadShape shape = shape_of(params, options.params.path);
  require_width("d_model", options.d_model, shape.d_output);
  require_width("d_k", sizes.d_k, shape.d_k);
  require_width("d_v", sizes.d_v, shape.d_v);
  return params;
}

template <class T>
MultiHeadParams<T> draw_params(const LayerOptions& options, const SizeOptions& sizes,
                               const LayerInputs* inputs, std::uint64_t seed,
                               std::vector<std::string>& notes) {
  if (options.std && options.init != Init::normal) {
    throw InputError("", "std", fmt::format("{}", *options.std), "needs init normal");
  }
  const MultiHeadShape shape = drawn_shape(options, sizes, inputs);
  notes.push_back(fmt::format("the layer's weights are {}, drawn from seed {}",
                              kChoiceNames<Init>[static_cast<std::size_t>(options.init)], seed));
  return draw_multi_head<T>(shape, options.init, options.std.value_or(0.02), seed);
}

template <class T>
void keep_params(const MultiHeadParams<T>& params, const Request& want, DType dtype,
                 MultiheadResult& result) {
  const auto keep = [&](std::string_view name, const Tensor<T>& tensor,
                        std::optional<AnyTensor>& field) {
    if (want.has(name)) field = AnyTensor(tensor).cast(dtype);
  };
  const auto keep_bias = [&](std::string_view name, const std::optional<Tensor<T>>& tensor,
                             std::optional<AnyTensor>& field) {
    if (tensor) keep(name, *tensor, field);
  };
  keep("w_q", params.w_q, result.w_q);
  keep("w_k", params.w_k, result.w_k);
  keep("w_v", params.w_v, result.w_v);
  keep("w_o", params.w_o, result.w_o);
  keep_bias("b_q", params.b_q, result.b_q);
  keep_bias("b_k", params.b_k, result.b_k);
  keep_bias("b_v", params.b_v, result.b_v);
  keep_bias("b_o", params.b_o, result.b_o);
  keep_bias("q_norm", params.q_norm, result.q_norm);
  keep_bias("k_norm", params.k_norm, result.k_norm);
  keep_bias("bias_k", params.bias_k, result.bias_k);
  keep_bias("bias_v", params.bias_v, result.bias_v);
}

template <class T>
void set_norm_eps(const LayerOptions& options, MultiHeadParams<T>& params) {
  if (!options.qk_norm_eps) return;
  if (!params.q_norm && !params.k_norm) {
    throw InputError("", "qk_norm_eps", fmt::format("{}", *options.qk_norm_eps),
                     "needs a layer that normalises queries and keys");
  }
  params.qk_norm_eps = *options.qk_norm_eps;
}

void keep_inputs(LayerInputs& inputs, const Request& want, MultiheadResult& result) {
  const auto keep = [&](std::string_view name, std::optional<AnyTensor>& tensor,
                        std::optional<AnyTensor>& field) {
    if (want.has(name)) field = std::move(tensor);
  };
  keep("x", inputs.x, result.x);
  keep("memory", inputs.memory, result.memory);
  keep("query", inputs.query, result.query);
  keep("key", inputs.key, result.key);
  keep("value", inputs.value, result.value);
}

// The gradient given, as [batch, n, d_output]; nothing without one.
template <class T>
std::optional<Tensor<T>> read_grad_output(const LayerGradientOptions& options,
                                          const HeadLayout& layout, const Shape& output,
                                          std::vector<std::string>& notes) {
  const std::optional<AnyTensor> given = read_grad_output(options.grad_output, notes);
  if (!given) return std::nullopt;
  // To the layout a layer's output is that of one head.
  return layout.split_output(given->cast<T>(), {output[0], 1, output[1], output[2]}, "grad_output")
      .reshaped(output);
}

// The dtype of the results, by all that is given.
DType dtype_of(Precision precision, const std::optional<LayerFile>& file,
               const std::optional<LayerInputs>& inputs, const std::optional<PastTensors>& past) {
  std::vector<DType> dtypes = file ? file->dtypes() : std::vector<DType>{};
  if (inputs) {
    dtypes.insert(dtypes.end(),
                  {inputs->queries().dtype(), inputs->keys().dtype(), inputs->values().dtype()});
  }
  if (past) dtypes.insert(dtypes.end(), {past->k.dtype(), past->v.dtype()});
  if (dtypes.empty()) dtypes = {DType::float32};
  return resolve_precision(precision, dtypes);
}

template <class T>
MultiheadResult multihead_as(const MultiheadOptions& options, const Use& use, LayerInputs inputs,
                             std::optional<PastTensors> given_past,
                             const MultiHeadParams<T>& params, DType dtype, Request want,
                             std::vector<std::string> notes) {
  const Tensor<T> query = with_batch<T>(inputs.queries());
  const Tensor<T> key = with_batch<T>(inputs.keys());
  const Tensor<T> value = with_batch<T>(inputs.values());
  MaskOptions mask_options = options.mask;
  mask_options.causal = use.causal;
  want = steps_taken(std::move(want), options.scores, mask_options, options.positions);
  if (!params.q_norm) want.leave_out_step("normed_q");
  if (!params.k_norm) want.leave_out_step("normed_k");
  std::optional<Past<T>> past;
  if (given_past) {
    past = given_past->as<T>();
  } else {
    want.leave_out_step("present_k");
    want.leave_out_step("present_v");
  }
  const Index past_keys = past ? past->k.shape()[2] : 0;
  Mask mask = make_mask(mask_options, options.positions, query.shape()[0], params.heads,
                        query.shape()[1], past_keys + key.shape()[1], past_keys, notes);
  const AttentionSettings settings =
      attention_settings(options.scores, options.run, params.shape().d_k);
  const HeadLayout layout = {.rank = inputs.queries().shape().rank(), .packed = true};
  const std::optional<Tensor<T>> grad_output =
      read_grad_output<T>(options.gradients, layout,
                          {query.shape()[0], query.shape()[1], params.w_o.shape()[1]}, notes);
  const Past<T>* before = past ? &*past : nullptr;
  MultiHeadResult<T> layer = multi_head(query, key, value, params, mask, settings, want, before);

  MultiheadResult result;
  std::optional<MultiHeadGradients<T>> gradients;
  if (grad_output) {
    gradients = multi_head_backward(query, key, value, params, layer, *grad_output, mask, settings,
                                    gradients_computed(inputs, want), before);
  }
  const auto keep_heads = [&](std::string_view name, Tensor<T>& tensor,
                              std::optional<AnyTensor>& field) {
    if (want.has(name)) field = AnyTensor(layout.restore_scores(std::move(tensor))).cast(dtype);
  };
  // Steps not taken are what they would start from, for who names them.
  const auto keep_step = [&](std::string_view name, std::optional<Tensor<T>>& turned,
                             const Tensor<T>& plain, std::optional<AnyTensor>& field) {
    if (!turned && want.has(name)) turned = plain;
    if (turned) keep_heads(name, *turned, field);
  };
  keep_step("rotated_q", layer.rotated_q, layer.plain_queries(), result.rotated_q);
  keep_step("rotated_k", layer.rotated_k, layer.plain_keys(), result.rotated_k);
  keep_step("normed_q", layer.normed_q, layer.q, result.normed_q);
  keep_step("normed_k", layer.normed_k, layer.k, result.normed_k);
  keep_heads("q", layer.q, result.q);
  keep_heads("k", layer.k, result.k);
  keep_heads("v", layer.v, result.v);
  if (layer.present_k) result.present_k = AnyTensor(*std::move(layer.present_k)).cast(dtype);
  if (layer.present_v) result.present_v = AnyTensor(*std::move(layer.present_v)).cast(dtype);
  note_zero_rows(layer.attention.empty_rows, layer.attention.overflowed_rows, notes);
  result.attention = attention_matrices(layer.attention, layout, dtype);
  keep_heads("heads", layer.attention.output, result.heads);
  const auto keep_rows = [&](Tensor<T>& tensor) {
    return AnyTensor(layout.restore_rows(std::move(tensor))).cast(dtype);
  };
  if (want.has("concat")) result.concat = keep_rows(layer.concat);
  result.output = keep_rows(layer.output);
  note_non_finite("output", *result.output, notes);
  if (gradients) {
    result.gradients = layer_gradients(inputs, *std::move(gradients), layout, dtype, want, notes);
  }
  keep_params(params, want, dtype, result);
  keep_inputs(inputs, want, result);
  result.empty_rows = layer.attention.empty_rows;
  result.call = MultiheadCall{
      std::move(mask),    std::move(given_past), settings, params.kv_heads, params.rope_theta,
      params.qk_norm_eps, params.add_zero_attn,  layout};
  result.notes = std::move(notes);
  return result;
}

}  // namespace

MultiheadResult multihead(const MultiheadOptions& options, const Request& want) {
  const Use use = use_of(options);
  const LayerOptions& layer = options.layer;
  check_layer_options(layer);

  std::vector<std::string> notes;
  std::optional<LayerFile> file;
  if (!layer.params.empty()) {
    file.emplace(layer.params.path, LayerChoice{layer.params_layout, layer.prefix, layer.layer},
                 notes);
  }
  std::optional<LayerInputs> inputs;
  if (gives_layer_inputs(options.inputs))
    inputs = read_layer_inputs(options.inputs, options.sizes, notes);
  std::optional<PastTensors> past = read_past(options.past, notes);

  const DType dtype = dtype_of(options.sizes.dtype, file, inputs, past);
  if (file) file->round_to(dtype, notes);
  if (past) past->round_to(dtype, notes);

  return visit_compute_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::uint64_t seed = options.run.seed;
    MultiHeadParams<T> params =
        file ? read_params<T>(*file, layer, options.sizes)
             : draw_params<T>(layer, options.sizes, inputs ? &*inputs : nullptr, seed, notes);
    params.add_zero_attn = layer.add_zero_attn || (file && file->add_zero_attn());
    if (!file) round_params(params, dtype);
    params.rope_theta = options.positions.rope_theta;
    set_norm_eps(layer, params);
    const MultiHeadShape shape = params.shape();
    if (inputs) {
      require_widths(*inputs, shape);
    } else {
      inputs = draw_layer_inputs(options.sizes, shape.d_query, shape.d_key,
                                 use.cross && !use.past_alone, seed, notes);
    }
    if (use.past_alone) inputs->memory = without_rows(*inputs->x, shape.d_key);
    round_inputs(*inputs, dtype, notes);
    MultiheadResult result = multihead_as<T>(options, use, std::move(*inputs), std::move(past),
                                             params, dtype, want, std::move(notes));
    if (!layer.save_params.empty()) result.layer = layer_tensors(params, dtype);
    return result;
  });
}

}  // namespace attnlab
