#include "attnlab/experiments/layer_inputs.h"

#include <fmt/format.h>

#include "attnlab/core/error.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

std::optional<AnyTensor> read_sequence(const TensorSource& source, std::string_view name,
                                       std::vector<std::string>& notes) {
  if (source.empty()) return std::nullopt;
  AnyTensor tensor = read_tensor(source, name, notes);
  if (tensor.shape().rank() != 2 && tensor.shape().rank() != 3) {
    throw InputError(source.values ? "" : source.path, name, tensor.shape().str(),
                     "need [n, d_model] or [batch, n, d_model]");
  }
  return tensor;
}

void refuse(const TensorSource& source, std::string_view name, std::string_view rule) {
  if (!source.empty()) throw InputError("", name, source.path, rule);
}

void require_same_batch(const LayerInputs& inputs, const LayerInputNames& names) {
  const Shape& queries = inputs.queries().shape();
  const auto check = [&](const std::optional<AnyTensor>& tensor, std::string_view name) {
    if (!tensor) return;
    const Shape& shape = tensor->shape();
    if (shape.rank() == queries.rank() && (shape.rank() == 2 || shape[0] == queries[0])) return;
    throw InputError("", name, shape.str(),
                     fmt::format("need the rank and batch of {} {}", inputs.x ? names.x : "query",
                                 queries.str()));
  };
  check(inputs.memory, names.memory);
  check(inputs.key, "key");
  check(inputs.value, "value");
}

LayerInputs read_inputs(const LayerInputOptions& options, const SizeOptions& sizes,
                        std::vector<std::string>& notes, const LayerInputNames& names) {
  LayerInputs inputs;
  const bool apart = !options.query.empty() || !options.key.empty() || !options.value.empty();
  if (apart) {
    refuse(options.x, "x", "give either x or query, key and value");
    refuse(options.memory, "memory", "belongs to x, not to query, key and value");
    for (const auto& [source, name] :
         {std::pair{&options.query, "query"}, {&options.key, "key"}, {&options.value, "value"}}) {
      if (source->empty()) {
        throw InputError("", name, "", "is needed: query, key and value come together");
      }
    }
  }
  inputs.x = read_sequence(options.x, names.x, notes);
  inputs.memory = read_sequence(options.memory, names.memory, notes);
  inputs.query = read_sequence(options.query, "query", notes);
  inputs.key = read_sequence(options.key, "key", notes);
  inputs.value = read_sequence(options.value, "value", notes);
  require_same_batch(inputs, names);
  const Shape& queries = inputs.queries().shape();
  require_size("batch", sizes.batch, inputs.x ? "x" : "query",
               queries.rank() == 3 ? queries[0] : 1);
  require_size("n", sizes.n, inputs.x ? "x" : "query", queries[-2]);
  require_size("m", sizes.m,
               inputs.memory ? "memory"
               : inputs.x    ? "x"
                             : "key",
               inputs.keys().shape()[-2]);
  return inputs;
}

Shape drawn_shape(const SizeOptions& sizes, Index n, Index d) {
  return sizes.batch ? Shape{*sizes.batch, n, d} : Shape{n, d};
}

}  // namespace

template <class T>
Tensor<T> with_batch(const AnyTensor& tensor) {
  Tensor<T> typed = tensor.cast<T>();
  const Shape shape = typed.shape();
  if (shape.rank() == 3) return typed;
  return std::move(typed).reshaped({1, shape[0], shape[1]});
}

bool gives_layer_inputs(const LayerInputOptions& options) {
  return !options.x.empty() || !options.memory.empty() || !options.query.empty() ||
         !options.key.empty() || !options.value.empty();
}

LayerInputs read_layer_inputs(const LayerInputOptions& options, const SizeOptions& sizes,
                              std::vector<std::string>& notes, const LayerInputNames& names) {
  if (options.x.empty() && !options.memory.empty()) {
    throw InputError("", "x", "", "is needed: it attends to the memory");
  }
  return read_inputs(options, sizes, notes, names);
}

void round_inputs(LayerInputs& inputs, DType dtype, std::vector<std::string>& notes,
                  const LayerInputNames& names) {
  const auto round = [&](std::optional<AnyTensor>& tensor, std::string_view name) {
    if (tensor) tensor = rounded_to(dtype, std::move(*tensor), name, notes);
  };
  round(inputs.x, names.x);
  round(inputs.memory, names.memory);
  round(inputs.query, "query");
  round(inputs.key, "key");
  round(inputs.value, "value");
}

AnyTensor without_rows(const AnyTensor& x, Index width) {
  const Shape& shape = x.shape();
  const Tensor<float> none(shape.rank() == 3 ? Shape{shape[0], 0, width} : Shape{0, width});
  return AnyTensor(none).cast(x.dtype());
}

void require_widths(const LayerInputs& inputs, const MultiHeadShape& shape) {
  const auto check = [](const std::optional<AnyTensor>& tensor, std::string_view name, Index width,
                        std::string_view weight) {
    if (!tensor || tensor->shape()[-1] == width) return;
    throw InputError("", name,
                     fmt::format("{} columns {}", tensor->shape()[-1], tensor->shape().str()),
                     fmt::format("need {}, the rows of {}", width, weight));
  };
  check(inputs.x, "x", shape.d_query, "w_q");
  check(inputs.query, "query", shape.d_query, "w_q");
  const auto& keys = inputs.memory ? inputs.memory : inputs.x ? inputs.x : inputs.key;
  const auto& values = inputs.memory ? inputs.memory : inputs.x ? inputs.x : inputs.value;
  const std::string_view one = inputs.memory ? "memory" : "x";
  check(keys, inputs.key ? "key" : one, shape.d_key, "w_k");
  check(values, inputs.value ? "value" : one, shape.d_value, "w_v");
}

LayerInputs draw_layer_inputs(const SizeOptions& sizes, Index d_query, Index d_key, bool cross,
                              std::uint64_t seed, std::vector<std::string>& notes,
                              const LayerInputNames& names) {
  LayerInputs inputs;
  const Index n = sizes.n.value_or(5), m = sizes.m.value_or(n);
  const SizedAxis batch{"batch", sizes.batch.value_or(1)}, queries{names.n, n},
      keys{sizes.m ? names.m : names.n, m};
  const SizedAxis query_width{names.d_model, d_query}, key_width{names.d_model, d_key};
  // x and memory, and what is at least computed from them: queries, keys, values and the output.
  std::vector<SizedTensor> needed = {{batch, queries, query_width},
                                     {batch, queries, query_width},
                                     {batch, queries, query_width},
                                     {batch, keys, key_width},
                                     {batch, keys, key_width}};
  if (cross) needed.push_back({batch, keys, key_width});
  require_drawing_memory(needed, sizes.dtype);
  inputs.x = draw_normal(drawn_shape(sizes, n, d_query), seed, Stream::input_x);
  if (cross) {
    inputs.memory = draw_normal(drawn_shape(sizes, m, d_key), seed, Stream::input_memory);
    notes.push_back(fmt::format("{} {} and {} {} are standard normal, drawn from seed {}", names.x,
                                inputs.x->shape().str(), names.memory, inputs.memory->shape().str(),
                                seed));
    return inputs;
  }
  if (m != n) {
    throw InputError("", "m", std::to_string(m),
                     "self attention has as many keys as queries; a memory comes with role cross");
  }
  notes.push_back(
      fmt::format("x {} is standard normal, drawn from seed {}", inputs.x->shape().str(), seed));
  return inputs;
}

template Tensor<float> with_batch(const AnyTensor&);
template Tensor<double> with_batch(const AnyTensor&);

}  // namespace attnlab
