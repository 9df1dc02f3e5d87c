#include "attnlab/attention/multi_head_backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "attnlab/attention/all_keys.h"
#include "attnlab/attention/kernel/projection.h"
#include "attnlab/attention/kernel/values.h"
#include "attnlab/attention/requirements.h"
#include "attnlab/attention/rms_norm.h"
#include "attnlab/attention/scaled_dot_product_backward.h"
#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"

namespace attnlab {
namespace {

// ---- what is asked for, and of what -------------------------------------------------------------

// One of the three projections of an input, and what its gradients are called.
struct ProjectionNames {
  std::string_view input, weight, bias, heads, past, norm, own;
};
constexpr ProjectionNames kQuery = {"grad_query", "grad_w_q",    "grad_b_q", "grad_q",
                                    "",           "grad_q_norm", ""};
constexpr ProjectionNames kKey = {"grad_key",    "grad_w_k",    "grad_b_k",   "grad_k",
                                  "grad_past_k", "grad_k_norm", "grad_bias_k"};
constexpr ProjectionNames kValue = {"grad_value",  "grad_w_v", "grad_b_v",   "grad_v",
                                    "grad_past_v", "",         "grad_bias_v"};

// The gradients of q, k and v that those of `want` are computed from.
Request heads_wanted(const Request& want) {
  Request heads;
  for (const ProjectionNames& names : {kQuery, kKey, kValue}) {
    const auto parts = {names.input, names.weight, names.bias, names.past, names.norm, names.own};
    if (std::any_of(parts.begin(), parts.end(), [&](auto name) { return want.has(name); })) {
      heads.add(names.heads);
    }
  }
  return heads;
}

void require_shape(std::string_view name, const Shape& shape, std::string_view of,
                   const Shape& expected) {
  if (shape == expected) return;
  throw InputError("", name, shape.str(), fmt::format("need that of {} = {}", of, expected.str()));
}

template <class T>
void require_forward(const MultiHeadResult<T>& forward, const MultiHeadParams<T>& params,
                     const MultiHeadShape& shape, Index batch, Index n, Index m) {
  const auto require_rows = [&](const Tensor<T>& rows, std::string_view what, Index heads,
                                Index count) {
    require_shape("forward", rows.shape(), what, {batch, heads, count, shape.d_k});
  };
  require_rows(forward.q, "q, [batch, heads, n, d_k]", shape.heads, n);
  require_rows(forward.k, "k, [batch, kv_heads, m, d_k]", shape.kv_heads, m);
  const auto require_like = [&](const std::optional<Tensor<T>>& step, bool takes_it,
                                std::string_view name, const Tensor<T>& rows) {
    if (step.has_value() != takes_it || (step && step->shape() != rows.shape())) {
      throw InputError("", "forward", fmt::format("{} {}", step ? "a" : "no", name),
                       "need what the same layer returned");
    }
  };
  require_like(forward.normed_q, params.q_norm.has_value(), "normed_q", forward.q);
  require_like(forward.normed_k, params.k_norm.has_value(), "normed_k", forward.k);
  require_like(forward.rotated_q, params.rope_theta.has_value(), "rotated_q", forward.q);
  require_like(forward.rotated_k, params.rope_theta.has_value(), "rotated_k", forward.k);
  require_shape("forward", forward.v.shape(), "v, [batch, kv_heads, m, d_v]",
                {batch, shape.kv_heads, m, shape.d_v});
  require_shape("forward", forward.concat.shape(), "concat, [batch, n, heads d_v]",
                {batch, n, shape.heads * shape.d_v});
}

// Throws InputError when there is no memory for the gradients that `want` names.
template <class T>
void require_gradients(const Request& want, const Shape& query, const Shape& key,
                       const Shape& value, const MultiHeadParams<T>& params, const Past<T>* past) {
  const std::array<std::pair<std::string_view, Index>, 9> sizes = {
      std::pair("grad_query", query.size()),
      {"grad_key", key.size()},
      {"grad_value", value.size()},
      {"grad_w_q", params.w_q.size()},
      {"grad_w_k", params.w_k.size()},
      {"grad_w_v", params.w_v.size()},
      {"grad_w_o", params.w_o.size()},
      {"grad_past_k", past ? past->k.size() : 0},
      {"grad_past_v", past ? past->v.size() : 0}};
  std::uint64_t elements = 0;
  for (const auto& [name, size] : sizes) {
    if (want.has(name)) elements += static_cast<std::uint64_t>(size);
  }
  require_memory(elements * sizeof(T), "grad_output");
}

// ---- y = x W + b, backwards ---------------------------------------------------------------------

// b broadcast to every row, backwards: the sum of the rows, in order. grad [batch, n, out].
template <class T>
Tensor<T> sum_of_rows(const Tensor<T>& grad) {
  const Index out = grad.shape()[2], rows = grad.shape()[0] * grad.shape()[1];
  // Where the terms cancel, as those of a key bias do, the digits lost are those of double.
  std::vector<double> sums(static_cast<std::size_t>(out));
  for (Index r = 0; r < rows; ++r) {
    const T* row = grad.data() + r * out;
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(row[c]);
  }
  Tensor<T> sum = Tensor<T>::uninitialized({out});
  std::transform(sums.begin(), sums.end(), sum.data(), [](double s) { return static_cast<T>(s); });
  return sum;
}

// Leaves `gradient`, that of all keys, to the current ones: the past and the layer's own key take
// what is theirs of it, where that is wanted.
template <class T>
void take_apart(const ProjectionNames& names, const AllKeys<T>& keys, const Request& want,
                std::optional<Tensor<T>>& gradient, std::optional<Tensor<T>>& grad_past,
                std::optional<Tensor<T>>& grad_bias) {
  if (!gradient) return;
  if (keys.has_past() && want.has(names.past)) grad_past = keys.past_of(*gradient);
  if (keys.has_bias() && want.has(names.own)) {
    grad_bias = sum_of_rows(merge_heads(keys.bias_of(*gradient)));
  }
  gradient = keys.current_of(*std::move(gradient));
}

// x^T grad [in, out]. x [batch, n, in], grad [batch, n, out].
template <class T>
Tensor<T> weight_gradient(const Tensor<T>& x, const Tensor<T>& grad,
                          const AttentionSettings& settings) {
  const Index in = x.shape()[2], out = grad.shape()[2];
  const Tensor<T> columns = transposed(x, settings).reshaped({1, in, x.shape()[0] * x.shape()[1]});
  return project<T>(columns, grad, std::nullopt, settings).reshaped({in, out});
}

// Whether the mask lets row `row` of an input take part in head `head` of its projection. Row 0 of
// one that keys or values come from is key `before`.
class TakesPart {
 public:
  TakesPart(const Mask& mask, Index heads, bool keys, Index before)
      : mask_(mask), group_(mask.heads() / heads), keys_(keys), before_(before) {}

  bool operator()(Index entry, Index head, Index row) const {
    for (Index h = head * group_; h < (head + 1) * group_; ++h) {
      const Index others = keys_ ? mask_.queries() : mask_.keys();
      for (Index other = 0; other < others; ++other) {
        if (keys_ ? mask_.may_attend(entry, h, other, before_ + row)
                  : mask_.may_attend(entry, h, row, other)) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  const Mask& mask_;
  Index group_;  // query heads that use one head of the projection
  bool keys_;
  Index before_;
};

// The same for a projection into `heads`. What is not finite enters only where the mask lets it:
// the gradient of what it hides is 0, which would make it NaN.
template <class T>
Tensor<T> weight_gradient(const Tensor<T>& x, const Tensor<T>& grad, Index heads,
                          const TakesPart& takes_part, const AttentionSettings& settings) {
  const Values<T> values(x);
  Tensor<T> gradient = weight_gradient(values.finite(), grad, settings);
  const Index width = grad.shape()[2] / heads;
  auto into = gradient.matrix();
  for (Index b = 0; b < x.shape()[0]; ++b) {
    for (const Index row : values.non_finite_rows(b)) {
      for (Index h = 0; h < heads; ++h) {
        if (!takes_part(b, h, row)) continue;
        const auto part = grad.matrix(b).row(row).segment(h * width, width);
        for (Index i = 0; i < x.shape()[2]; ++i) {
          const T value = x.matrix(b)(row, i);
          if (!std::isfinite(value)) into.row(i).segment(h * width, width) += value * part;
        }
      }
    }
  }
  return gradient;
}

// Back over a rotation, where there is one.
template <class T>
void turn_back(const std::optional<Rotary>& rotary, Index threads, std::optional<Tensor<T>>& grad) {
  if (grad && rotary) grad = rotate_back(*std::move(grad), *rotary, threads);
}

// Back over the norm of x, where there is one.
template <class T>
void leave_norm(const ProjectionNames& names, const Tensor<T>& x,
                const std::optional<Tensor<T>>& norm, double eps, const Request& want,
                std::optional<Tensor<T>>& grad, std::optional<Tensor<T>>& grad_norm) {
  if (!grad || !norm) return;
  RmsNormGradients<T> back = rms_norm_backward(x, *norm, eps, *grad);
  grad = std::move(back.grad_x);
  if (want.has(names.norm)) grad_norm = std::move(back.grad_weight);
}

}  // namespace

Request all_layer_gradients() {
  return {"grad_query",  "grad_key",    "grad_value",  "grad_w_q",    "grad_b_q",   "grad_w_k",
          "grad_b_k",    "grad_w_v",    "grad_b_v",    "grad_w_o",    "grad_b_o",   "grad_past_k",
          "grad_past_v", "grad_q_norm", "grad_k_norm", "grad_bias_k", "grad_bias_v"};
}

template <class T>
MultiHeadGradients<T> multi_head_backward(const Tensor<T>& query, const Tensor<T>& key,
                                          const Tensor<T>& value, const MultiHeadParams<T>& params,
                                          const MultiHeadResult<T>& forward,
                                          const Tensor<T>& grad_output, const Mask& mask,
                                          const AttentionSettings& settings, const Request& want,
                                          const Past<T>* past) {
  const MultiHeadShape shape = params.shape();
  require_multi_head(query.shape(), key.shape(), value.shape(), shape, past, mask, settings, {});
  const Index batch = query.shape()[0], n = query.shape()[1], m = key.shape()[1];
  require_shape("grad_output", grad_output.shape(), "the output, [batch, n, d_output]",
                {batch, n, shape.d_output});
  require_forward(forward, params, shape, batch, n, m);
  require_gradients(want, query.shape(), key.shape(), value.shape(), params, past);

  MultiHeadGradients<T> gradients;
  if (want.has("grad_w_o")) {
    gradients.grad_w_o = weight_gradient(forward.concat, grad_output, settings);
  }
  if (params.b_o && want.has("grad_b_o")) gradients.grad_b_o = sum_of_rows(grad_output);
  const Request heads = heads_wanted(want);
  if (heads.empty()) return gradients;

  const Tensor<T> grad_heads = project_heads<T>(grad_output, transposed(params.w_o, settings),
                                                std::nullopt, shape.heads, settings);
  const AllKeys<T> k(params.bias_k, params.add_zero_attn, past ? &past->k : nullptr,
                     forward.keys());
  const AllKeys<T> v(params.bias_v, params.add_zero_attn, past ? &past->v : nullptr, forward.v);
  const MaskOfAll all(mask, params.own_keys());
  AttentionGradients<T> attention = scaled_dot_product_backward(
      forward.queries(), k.all(), v.all(), grad_heads, all.mask(), settings, heads);
  take_apart(kKey, k, want, attention.grad_k, gradients.grad_past_k, gradients.grad_bias_k);
  take_apart(kValue, v, want, attention.grad_v, gradients.grad_past_v, gradients.grad_bias_v);
  const Rotations rotations = layer_rotations(params.rope_theta, mask, m);
  turn_back(rotations.queries, settings.threads, attention.grad_q);
  turn_back(rotations.keys, settings.threads, attention.grad_k);
  const double eps = params.qk_norm_eps;
  leave_norm(kQuery, forward.q, params.q_norm, eps, want, attention.grad_q, gradients.grad_q_norm);
  leave_norm(kKey, forward.k, params.k_norm, eps, want, attention.grad_k, gradients.grad_k_norm);

  const auto differentiate =
      [&](const ProjectionNames& names, std::optional<Tensor<T>>& split, const Tensor<T>& x,
          const Tensor<T>& w, const std::optional<Tensor<T>>& b, std::optional<Tensor<T>>& grad_x,
          std::optional<Tensor<T>>& grad_w, std::optional<Tensor<T>>& grad_b) {
        if (!split) return;
        const Index count = split->shape()[1];
        const Tensor<T> grad = merge_heads(*split);
        split.reset();
        if (want.has(names.input)) {
          grad_x = project<T>(grad, transposed(w, settings), std::nullopt, settings);
        }
        if (want.has(names.weight)) {
          const bool keys = names.input != kQuery.input;
          const TakesPart takes_part(all.mask(), count, keys, keys ? k.before() : 0);
          grad_w = weight_gradient(x, grad, count, takes_part, settings);
        }
        if (b && want.has(names.bias)) grad_b = sum_of_rows(grad);
      };
  differentiate(kQuery, attention.grad_q, query, params.w_q, params.b_q, gradients.grad_query,
                gradients.grad_w_q, gradients.grad_b_q);
  differentiate(kKey, attention.grad_k, key, params.w_k, params.b_k, gradients.grad_key,
                gradients.grad_w_k, gradients.grad_b_k);
  differentiate(kValue, attention.grad_v, value, params.w_v, params.b_v, gradients.grad_value,
                gradients.grad_w_v, gradients.grad_b_v);
  return gradients;
}

template MultiHeadGradients<float> multi_head_backward(
    const Tensor<float>&, const Tensor<float>&, const Tensor<float>&, const MultiHeadParams<float>&,
    const MultiHeadResult<float>&, const Tensor<float>&, const Mask&, const AttentionSettings&,
    const Request&, const Past<float>*);
template MultiHeadGradients<double> multi_head_backward(
    const Tensor<double>&, const Tensor<double>&, const Tensor<double>&,
    const MultiHeadParams<double>&, const MultiHeadResult<double>&, const Tensor<double>&,
    const Mask&, const AttentionSettings&, const Request&, const Past<double>*);

}  // namespace attnlab
