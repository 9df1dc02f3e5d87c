#include "attnlab/experiments/attention_inputs.h"

#include <fmt/format.h>

#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/core/random.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

AnyTensor draw(const Shape& shape, std::uint64_t seed, Stream stream) {
  require_memory(static_cast<std::uint64_t>(shape.size()) * sizeof(float), "tensor " + shape.str());
  Tensor<float> tensor = Tensor<float>::uninitialized(shape);
  fill_normal(tensor.values(), seed, stream);
  return tensor;
}

// [n, d] with as many of the axes before it as the user named.
Shape drawn_shape(const AttentionInputOptions& options, Index heads, Index n, Index d) {
  if (options.batch) return {*options.batch, heads, n, d};
  if (options.heads || options.kv_heads) return {heads, n, d};
  return {n, d};
}

RawAttentionInputs draw_inputs(const AttentionInputOptions& options, std::uint64_t seed) {
  const Index heads = options.heads.value_or(1);
  const Index kv_heads = options.kv_heads.value_or(heads);
  const Index n = options.n.value_or(6), m = options.m.value_or(n);
  const Index d_k = options.d_k.value_or(8), d_v = options.d_v.value_or(d_k);
  RawAttentionInputs raw;
  raw.q = draw(drawn_shape(options, heads, n, d_k), seed, Stream::input_q);
  raw.k = draw(drawn_shape(options, kv_heads, m, d_k), seed, Stream::input_k);
  raw.v = draw(drawn_shape(options, kv_heads, m, d_v), seed, Stream::input_v);
  return raw;
}

// Without V the weights can still be computed: one of width 0 stands in.
AnyTensor widthless_like(const AnyTensor& k) {
  const Shape& shape = k.shape();
  std::vector<Index> axes(shape.axes().begin(), shape.axes().end());
  if (!axes.empty()) axes.back() = 0;
  return AnyTensor(Tensor<float>(Shape(axes))).cast(k.dtype());
}

RawAttentionInputs read_inputs(const AttentionInputOptions& options, bool need_v,
                               std::vector<std::string>& notes) {
  const auto needed = [](const TensorSource& source, const char* name) {
    if (source.empty())
      throw InputError("", name, "", "is needed: give q, k and v, or none of them");
  };
  needed(options.q, "q");
  needed(options.k, "k");
  if (need_v) needed(options.v, "v");
  RawAttentionInputs raw;
  raw.q = read_tensor(options.q, "q", notes);
  raw.k = read_tensor(options.k, "k", notes);
  raw.v = options.v.empty() ? widthless_like(raw.k) : read_tensor(options.v, "v", notes);
  if (raw.k.shape().rank() != raw.q.shape().rank() ||
      raw.v.shape().rank() != raw.q.shape().rank()) {
    const bool k_differs = raw.k.shape().rank() != raw.q.shape().rank();
    throw InputError(
        "", k_differs ? "k" : "v", (k_differs ? raw.k : raw.v).shape().str(),
        fmt::format("need the rank of q {}, {}", raw.q.shape().str(), raw.q.shape().rank()));
  }
  return raw;
}

void require_size(std::string_view option, std::optional<Index> given, std::string_view tensor,
                  Index actual) {
  if (!given || *given == actual) return;
  throw InputError("", option, std::to_string(*given),
                   fmt::format("{} has {}; sizes are for drawing without files", tensor, actual));
}

}  // namespace

RawAttentionInputs read_attention_inputs(const AttentionInputOptions& options, std::uint64_t seed,
                                         bool need_v, std::vector<std::string>& notes) {
  const bool drawn = options.q.empty() && options.k.empty() && options.v.empty();
  RawAttentionInputs raw = drawn ? draw_inputs(options, seed) : read_inputs(options, need_v, notes);
  if (drawn) {
    notes.push_back(fmt::format("q {}, k {} and v {} are standard normal, drawn from seed {}",
                                raw.q.shape().str(), raw.k.shape().str(), raw.v.shape().str(),
                                seed));
  }
  if (options.past_k.empty() != options.past_v.empty()) {
    throw InputError("", options.past_k.empty() ? "past_k" : "past_v", "",
                     "is needed: past keys and past values come together");
  }
  if (!options.past_k.empty()) {
    raw.past_k = read_tensor(options.past_k, "past_k", notes);
    raw.past_v = read_tensor(options.past_v, "past_v", notes);
  }
  std::vector<DType> dtypes = {raw.q.dtype(), raw.k.dtype(), raw.v.dtype()};
  if (raw.past_k) dtypes.insert(dtypes.end(), {raw.past_k->dtype(), raw.past_v->dtype()});
  raw.dtype = resolve_precision(options.dtype, dtypes);
  raw.layout.rank = raw.q.shape().rank();
  raw.layout.packed = !drawn && options.heads && raw.layout.rank < 4;
  if (!drawn && options.kv_heads && !options.heads && raw.layout.rank < 4) {
    throw InputError("", "kv_heads", std::to_string(*options.kv_heads),
                     "needs heads: together they split the last axes");
  }
  return raw;
}

template <class T>
AttentionInputs<T> split_attention_inputs(const AttentionInputOptions& options,
                                          RawAttentionInputs raw) {
  const bool drawn = options.q.empty();
  const std::optional<Index> heads = drawn ? std::nullopt : options.heads;
  std::optional<Index> kv_heads = drawn ? std::nullopt : options.kv_heads;
  if (raw.layout.packed && !kv_heads) kv_heads = heads;
  AttentionInputs<T> inputs;
  inputs.q = to_heads(std::move(raw.q).template cast<T>(), heads, "q", "heads");
  inputs.k = to_heads(std::move(raw.k).template cast<T>(), kv_heads, "k", "kv_heads");
  inputs.v = to_heads(std::move(raw.v).template cast<T>(), kv_heads, "v", "kv_heads");
  require_size("batch", options.batch, "q", inputs.q.shape()[0]);
  require_size("n", options.n, "q", inputs.q.shape()[2]);
  require_size("m", options.m, "k", inputs.k.shape()[2]);
  require_size("d_k", options.d_k, "q", inputs.q.shape()[3]);
  require_size("d_v", options.d_v, "v", inputs.v.shape()[3]);
  if (raw.past_k) {
    const Tensor<T> past_k =
        to_heads(raw.past_k->template cast<T>(), std::nullopt, "past_k", "kv_heads");
    const Tensor<T> past_v =
        to_heads(raw.past_v->template cast<T>(), std::nullopt, "past_v", "kv_heads");
    inputs.past = past_k.shape()[2];
    inputs.k = append_keys(past_k, inputs.k, "past_k");
    inputs.v = append_keys(past_v, inputs.v, "past_v");
  }
  return inputs;
}

template AttentionInputs<float> split_attention_inputs(const AttentionInputOptions&,
                                                       RawAttentionInputs);
template AttentionInputs<double> split_attention_inputs(const AttentionInputOptions&,
                                                        RawAttentionInputs);

}  // namespace attnlab
