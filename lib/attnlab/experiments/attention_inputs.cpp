#include "attnlab/experiments/attention_inputs.h"

#include <fmt/format.h>

#include "attnlab/core/error.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

// [n, d] with as many of the axes before it as the user named.
Shape drawn_shape(const SizeOptions& options, Index heads, Index n, Index d) {
  if (options.batch) return {*options.batch, heads, n, d};
  if (options.heads || options.kv_heads) return {heads, n, d};
  return {n, d};
}

// Draws Q, K and V, the latter only with `values`.
RawAttentionInputs draw_inputs(const SizeOptions& options, bool values, std::uint64_t seed) {
  const Index heads = options.heads.value_or(1);
  const Index kv_heads = options.kv_heads.value_or(heads);
  require_divisor("kv_heads", kv_heads, "heads", heads);
  const Index n = options.n.value_or(5), m = options.m.value_or(n);
  const Index d_k = options.d_k.value_or(8);
  const Index d_v = values ? options.d_v.value_or(d_k) : 0;
  const SizedAxis batch{"batch", options.batch.value_or(1)}, queries{"n", n},
      keys{options.m ? "m" : "n", m}, width{"d_k", d_k};
  const SizedAxis value_width{options.d_v ? "d_v" : "d_k", d_v};
  const SizedAxis query_heads{"heads", heads}, key_heads{"kv_heads", kv_heads};
  std::vector<SizedTensor> needed = {{batch, query_heads, queries, width},
                                     {batch, key_heads, keys, width}};
  if (values) {
    needed.push_back({batch, key_heads, keys, value_width});
    needed.push_back({batch, query_heads, queries, value_width});  // the output
  }
  require_drawing_memory(needed, options.dtype);
  RawAttentionInputs raw;
  raw.q = draw_normal(drawn_shape(options, heads, n, d_k), seed, Stream::input_q);
  raw.k = draw_normal(drawn_shape(options, kv_heads, m, d_k), seed, Stream::input_k);
  raw.v = draw_normal(drawn_shape(options, kv_heads, m, d_v), seed, Stream::input_v);
  return raw;
}

// Keys [.., m, d] to values of width 0.
AnyTensor without_width(const Shape& keys) {
  std::vector<Index> axes(keys.axes().begin(), keys.axes().end());
  if (!axes.empty()) axes.back() = 0;
  return Tensor<float>(Shape(axes));
}

// Reads Q, K and V, the latter only where there are `value` options.
RawAttentionInputs read_inputs(const QueryKeyOptions& query_key, const ValueOptions* value,
                               std::vector<std::string>& notes) {
  const auto read = [&](const TensorSource& source, std::string_view name) {
    if (source.empty()) {
      throw InputError("", name, "",
                       value == nullptr ? "is needed: give q and k, or none of them"
                                        : "is needed: give q, k and v, or none of them");
    }
    return read_tensor(source, name, notes);
  };
  RawAttentionInputs raw;
  raw.q = read(query_key.q, "q");
  raw.k = read(query_key.k, "k");
  raw.v = value == nullptr ? without_width(raw.k.shape()) : read(value->v, "v");
  const Shape& q = raw.q.shape();
  const auto require_rank = [&](const AnyTensor& tensor, std::string_view name) {
    if (tensor.shape().rank() == q.rank()) return;
    throw InputError("", name, tensor.shape().str(),
                     fmt::format("need the rank of q {}, {}", q.str(), q.rank()));
  };
  require_rank(raw.k, "k");
  require_rank(raw.v, "v");
  return raw;
}

void round_inputs(RawAttentionInputs& raw, std::vector<std::string>& notes) {
  const auto round = [&](AnyTensor& tensor, std::string_view name) {
    tensor = rounded_to(raw.dtype, std::move(tensor), name, notes);
  };
  round(raw.q, "q");
  round(raw.k, "k");
  round(raw.v, "v");
  if (raw.past) raw.past->round_to(raw.dtype, notes);
}

void note_drawn(const RawAttentionInputs& raw, bool values, std::uint64_t seed,
                std::vector<std::string>& notes) {
  const std::string q = raw.q.shape().str(), k = raw.k.shape().str();
  const std::string names = values ? fmt::format("q {}, k {} and v {}", q, k, raw.v.shape().str())
                                   : fmt::format("q {} and k {}", q, k);
  notes.push_back(fmt::format("{} are standard normal, drawn from seed {}", names, seed));
}

RawAttentionInputs read_or_draw(const QueryKeyOptions& query_key, const ValueOptions* value,
                                const SizeOptions& sizes, std::uint64_t seed,
                                std::vector<std::string>& notes) {
  const bool drawn =
      query_key.q.empty() && query_key.k.empty() && (value == nullptr || value->v.empty());
  RawAttentionInputs raw =
      drawn ? draw_inputs(sizes, value != nullptr, seed) : read_inputs(query_key, value, notes);
  raw.drawn = drawn;
  if (drawn) note_drawn(raw, value != nullptr, seed, notes);
  if (value != nullptr) raw.past = read_past(value->past, notes);
  std::vector<DType> dtypes = {raw.q.dtype(), raw.k.dtype()};
  if (value != nullptr) dtypes.push_back(raw.v.dtype());
  if (raw.past) dtypes.insert(dtypes.end(), {raw.past->k.dtype(), raw.past->v.dtype()});
  raw.dtype = resolve_precision(sizes.dtype, dtypes);
  round_inputs(raw, notes);
  raw.layout.rank = raw.q.shape().rank();
  raw.layout.packed = !drawn && sizes.heads && raw.layout.rank < 4;
  if (!drawn && sizes.kv_heads && !sizes.heads && raw.layout.rank < 4) {
    throw InputError("", "kv_heads", std::to_string(*sizes.kv_heads),
                     "needs heads: together they split the last axes");
  }
  if (sizes.heads && sizes.kv_heads) {
    require_divisor("kv_heads", *sizes.kv_heads, "heads", *sizes.heads);
  }
  return raw;
}

}  // namespace

RawAttentionInputs read_attention_inputs(const QueryKeyOptions& query_key,
                                         const ValueOptions& value, const SizeOptions& sizes,
                                         std::uint64_t seed, std::vector<std::string>& notes) {
  return read_or_draw(query_key, &value, sizes, seed, notes);
}

RawAttentionInputs read_query_key(const QueryKeyOptions& query_key, const SizeOptions& sizes,
                                  std::uint64_t seed, std::vector<std::string>& notes) {
  return read_or_draw(query_key, nullptr, sizes, seed, notes);
}

template <class T>
AttentionInputs<T> split_attention_inputs(const SizeOptions& sizes, RawAttentionInputs raw) {
  // What is drawn has its heads apart already.
  const std::optional<Index> heads = raw.drawn ? std::nullopt : sizes.heads;
  std::optional<Index> kv_heads = raw.drawn ? std::nullopt : sizes.kv_heads;
  if (raw.layout.packed && !kv_heads) kv_heads = heads;
  AttentionInputs<T> inputs;
  inputs.q = to_heads(std::move(raw.q).template cast<T>(), heads, "q", "heads");
  inputs.k = to_heads(std::move(raw.k).template cast<T>(), kv_heads, "k", "kv_heads");
  inputs.v = to_heads(std::move(raw.v).template cast<T>(), kv_heads, "v", "kv_heads");
  require_size("batch", sizes.batch, "q", inputs.q.shape()[0]);
  require_size("n", sizes.n, "q", inputs.q.shape()[2]);
  require_size("m", sizes.m, "k", inputs.k.shape()[2]);
  require_size("d_k", sizes.d_k, "q", inputs.q.shape()[3]);
  require_size("d_v", sizes.d_v, "v", inputs.v.shape()[3]);
  if (raw.past) {
    const Past<T> past = raw.past->as<T>();
    inputs.has_past = true;
    inputs.past = past.k.shape()[2];
    inputs.k = append_keys(past.k, inputs.k, "past_k");
    inputs.v = append_keys(past.v, inputs.v, "past_v");
  }
  return inputs;
}

template <class T>
Rotations rotate_inputs(AttentionInputs<T>& inputs, const PositionOptions& options,
                        const Mask& mask, Index threads) {
  Rotations rotations = rotations_of(options, mask, inputs.past);
  inputs.q = rotated(std::move(inputs.q), rotations.queries, threads);
  inputs.k = rotated(std::move(inputs.k), rotations.keys, threads);
  return rotations;
}

template AttentionInputs<float> split_attention_inputs(const SizeOptions&, RawAttentionInputs);
template AttentionInputs<double> split_attention_inputs(const SizeOptions&, RawAttentionInputs);
template Rotations rotate_inputs(AttentionInputs<float>&, const PositionOptions&, const Mask&,
                                 Index);
template Rotations rotate_inputs(AttentionInputs<double>&, const PositionOptions&, const Mask&,
                                 Index);

}  // namespace attnlab
