#include "attnlab/attention/multi_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "attnlab/attention/all_keys.h"
#include "attnlab/attention/earlier_result.h"
#include "attnlab/attention/kernel/projection.h"
#include "attnlab/attention/requirements.h"
#include "attnlab/attention/rms_norm.h"
#include "attnlab/core/error.h"

namespace attnlab {
namespace {

void require_matrix(std::string_view name, const Shape& shape) {
  if (shape.rank() == 2) return;
  throw InputError("", name, shape.str(), "need 2 axes, [in, out]");
}

// The width of each of `heads` heads that lie side by side in the columns of `name`.
Index head_width(std::string_view name, const Shape& shape, Index heads, std::string_view of) {
  if (shape[1] > 0 && shape[1] % heads == 0) return shape[1] / heads;
  throw InputError("", name, fmt::format("{} columns {}", shape[1], shape.str()),
                   fmt::format("need a multiple of the {} {}", heads, of));
}

template <class T>
void require_bias(std::string_view name, const std::optional<Tensor<T>>& bias,
                  std::string_view weight, const Shape& shape) {
  if (!bias || bias->shape() == Shape{shape[1]}) return;
  throw InputError("", name, bias->shape().str(),
                   fmt::format("need [{}], the columns of {}", shape[1], weight));
}

template <class T>
void require_norm(std::string_view name, const std::optional<Tensor<T>>& weight, Index d_k) {
  if (!weight || weight->shape() == Shape{d_k}) return;
  throw InputError("", name, weight->shape().str(),
                   fmt::format("need [{}], the width of a head of queries and keys", d_k));
}

// [.., own + m] as [.., m + own]: keys of the layer's own from before the others to behind them.
template <class T>
void put_own_keys_last(std::optional<Tensor<T>>& matrix, Index own) {
  if (!matrix || own == 0) return;
  const Index columns = matrix->shape()[-1];
  for (T* row = matrix->data(); row != matrix->data() + matrix->size(); row += columns) {
    std::rotate(row, row + own, row + columns);
  }
}

}  // namespace

template <class T>
MultiHeadShape MultiHeadParams<T>::shape() const {
  if (kv_heads < 1) throw InputError("", "kv_heads", std::to_string(kv_heads), "need at least 1");
  if (heads < 1 || heads % kv_heads != 0) {
    throw InputError("", "heads", std::to_string(heads),
                     fmt::format("need a multiple of the {} kv_heads", kv_heads));
  }
  require_matrix("w_q", w_q.shape());
  require_matrix("w_k", w_k.shape());
  require_matrix("w_v", w_v.shape());
  require_matrix("w_o", w_o.shape());

  MultiHeadShape shape;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.d_query = w_q.shape()[0];
  shape.d_key = w_k.shape()[0];
  shape.d_value = w_v.shape()[0];
  shape.d_output = w_o.shape()[1];
  shape.d_k = head_width("w_q", w_q.shape(), heads, "heads");
  const Index d_k = head_width("w_k", w_k.shape(), kv_heads, "kv_heads");
  shape.d_v = head_width("w_v", w_v.shape(), kv_heads, "kv_heads");
  if (d_k != shape.d_k) {
    throw InputError("", "w_k", fmt::format("{} kv_heads of width {}", kv_heads, d_k),
                     fmt::format("need the width {} of the heads of w_q", shape.d_k));
  }
  if (w_o.shape()[0] != heads * shape.d_v) {
    throw InputError("", "w_o", fmt::format("{} rows {}", w_o.shape()[0], w_o.shape().str()),
                     fmt::format("need {}, {} heads of width {} as in w_v", heads * shape.d_v,
                                 heads, shape.d_v));
  }
  require_bias("b_q", b_q, "w_q", w_q.shape());
  require_bias("b_k", b_k, "w_k", w_k.shape());
  require_bias("b_v", b_v, "w_v", w_v.shape());
  require_bias("b_o", b_o, "w_o", w_o.shape());
  require_bias("bias_k", bias_k, "w_k", w_k.shape());
  require_bias("bias_v", bias_v, "w_v", w_v.shape());
  if (bias_k.has_value() != bias_v.has_value()) {
    throw InputError("", bias_k ? "bias_v" : "bias_k", "",
                     "is needed: a key of the layer's own and its value come together");
  }
  shape.bias = b_q || b_k || b_v || b_o;
  require_norm("q_norm", q_norm, shape.d_k);
  require_norm("k_norm", k_norm, shape.d_k);
  shape.qk_norm = q_norm || k_norm;
  return shape;
}

template <class T>
void multi_head(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value,
                const MultiHeadParams<T>& params, const Mask& mask,
                const AttentionSettings& settings, const Request& want, const Past<T>* past,
                MultiHeadResult<T>& result) {
  AttentionResult<T> earlier = std::move(result.attention);
  // What is there already needs no memory: scaled_dot_product asks for that of the rest.
  const Request early = earlier.output.size() == 0 ? want : Request();
  result = {};
  result.attention = std::move(earlier);
  const MultiHeadShape shape = params.shape();
  require_multi_head(query.shape(), key.shape(), value.shape(), shape, past, mask, settings, early);
  const Rotations rotations = layer_rotations(params.rope_theta, mask, key.shape()[1]);
  if (rotations.queries) {
    const Index batch = query.shape()[0], d_k = shape.d_k;
    require_rotary({batch, shape.heads, query.shape()[1], d_k}, *rotations.queries);
    require_rotary({batch, shape.kv_heads, key.shape()[1], d_k}, *rotations.keys);
  }

  result.q = project_heads(query, params.w_q, params.b_q, shape.heads, settings);
  result.k = project_heads(key, params.w_k, params.b_k, shape.kv_heads, settings);
  result.v = project_heads(value, params.w_v, params.b_v, shape.kv_heads, settings);
  if (params.q_norm) {
    result.normed_q = rms_norm(result.q, *params.q_norm, params.qk_norm_eps, "q_norm");
  }
  if (params.k_norm) {
    result.normed_k = rms_norm(result.k, *params.k_norm, params.qk_norm_eps, "k_norm");
  }
  if (rotations.queries) {
    result.rotated_q = rotate(result.plain_queries(), *rotations.queries, settings.threads);
    result.rotated_k = rotate(result.plain_keys(), *rotations.keys, settings.threads);
  }
  const AllKeys<T> k(params.bias_k, params.add_zero_attn, past ? &past->k : nullptr, result.keys());
  const AllKeys<T> v(params.bias_v, params.add_zero_attn, past ? &past->v : nullptr, result.v);
  if (want.has("present_k")) result.present_k = k.present();
  if (want.has("present_v")) result.present_v = v.present();
  const MaskOfAll all(mask, params.own_keys());
  AttentionResult<T>& a = result.attention;
  scaled_dot_product(result.queries(), k.all(), v.all(), all.mask(), settings, want, a);
  for (auto* matrix : {&a.raw_scores, &a.scores, &a.capped_scores, &a.masked_scores, &a.weights}) {
    put_own_keys_last(*matrix, params.own_keys());
  }
  result.concat = merge_heads(result.attention.output);
  result.output = project(result.concat, params.w_o, params.b_o, settings);
}

template <class T>
MultiHeadResult<T> multi_head(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value,
                              const MultiHeadParams<T>& params, const Mask& mask,
                              const AttentionSettings& settings, const Request& want,
                              const Past<T>* past) {
  MultiHeadResult<T> result;
  multi_head(query, key, value, params, mask, settings, want, past, result);
  return result;
}

Rotations layer_rotations(std::optional<double> rope_theta, const Mask& mask, Index keys) {
  if (!rope_theta) return {};
  return {Rotary{.theta = *rope_theta, .offsets = mask.offsets(), .from = 0},
          Rotary{.theta = *rope_theta, .offsets = {mask.keys() - keys}, .from = 0}};
}

template <class T>
Tensor<T> split_heads(const Tensor<T>& packed, Index heads) {
  const Shape& shape = packed.shape();
  if (shape.rank() != 3) {
    throw InputError("", "", shape.str(), "need 3 axes, [batch, length, heads * width]");
  }
  if (heads < 1 || shape[2] % heads != 0) {
    throw InputError("", "heads", std::to_string(heads),
                     fmt::format("need a divisor of the width {}", shape[2]));
  }
  const Index n = shape[1], d = shape[2] / heads;
  Tensor<T> split = Tensor<T>::uninitialized({shape[0], heads, n, d});
  for (Index b = 0; b < shape[0]; ++b) {
    for (Index h = 0; h < heads; ++h) {
      split.matrix(b * heads + h) = packed.matrix(b).middleCols(h * d, d);
    }
  }
  return split;
}

template <class T>
Tensor<T> merge_heads(const Tensor<T>& split) {
  const Shape& shape = split.shape();
  if (shape.rank() != 4) {
    throw InputError("", "", shape.str(), "need 4 axes, [batch, heads, length, width]");
  }
  const Index heads = shape[1], d = shape[3];
  Tensor<T> packed = Tensor<T>::uninitialized({shape[0], shape[2], heads * d});
  for (Index b = 0; b < shape[0]; ++b) {
    for (Index h = 0; h < heads; ++h) {
      packed.matrix(b).middleCols(h * d, d) = split.matrix(b * heads + h);
    }
  }
  return packed;
}

template struct MultiHeadParams<float>;
template struct MultiHeadParams<double>;
template MultiHeadResult<float> multi_head(const Tensor<float>&, const Tensor<float>&,
                                           const Tensor<float>&, const MultiHeadParams<float>&,
                                           const Mask&, const AttentionSettings&, const Request&,
                                           const Past<float>*);
template MultiHeadResult<double> multi_head(const Tensor<double>&, const Tensor<double>&,
                                            const Tensor<double>&, const MultiHeadParams<double>&,
                                            const Mask&, const AttentionSettings&, const Request&,
                                            const Past<double>*);
template void multi_head(const Tensor<float>&, const Tensor<float>&, const Tensor<float>&,
                         const MultiHeadParams<float>&, const Mask&, const AttentionSettings&,
                         const Request&, const Past<float>*, MultiHeadResult<float>&);
template void multi_head(const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
                         const MultiHeadParams<double>&, const Mask&, const AttentionSettings&,
                         const Request&, const Past<double>*, MultiHeadResult<double>&);
template Tensor<float> split_heads(const Tensor<float>&, Index);
template Tensor<double> split_heads(const Tensor<double>&, Index);
template Tensor<float> merge_heads(const Tensor<float>&);
template Tensor<double> merge_heads(const Tensor<double>&);

}  // namespace attnlab
