#pragma once

#include <optional>
#include <vector>

#include "attention/layer_case.h"
#include "attention/reference_case.h"
#include "attnlab/attention/multi_head_backward.h"

namespace attnlab::test {

// Inputs, past, layer, mask and cotangent of one backward pass.
template <class T>
struct DrawnLayer {
  Tensor<T> query, key, value, grad_output;
  std::optional<Past<T>> past;
  MultiHeadParams<T> params;
  DrawnCase<T> attention;  // its mask and settings, and what the loops call them
};

inline MultiHeadShape shape_of(const Case& c, bool bias) {
  return {.d_query = 7,
          .d_key = 5,
          .d_value = 6,
          .d_output = 4,
          .heads = c.heads,
          .kv_heads = c.kv_heads,
          .d_k = c.d_k,
          .d_v = c.d_v,
          .bias = bias};
}

// Which keys a layer has of its own.
struct OwnKeys {
  bool bias = false;  // bias_k and bias_v
  bool zero = false;  // add_zero_attn
};

// The first `past` of the keys come from a past, if that is not negative.
template <class T>
DrawnLayer<T> draw_layer(const Case& c, bool bias, Index past = -1, OwnKeys own = {}) {
  Numbers numbers(static_cast<std::uint64_t>(c.n * 10 + c.m));
  const Index m = c.m - std::max<Index>(past, 0);
  std::optional<Past<T>> before;
  if (past >= 0) {
    before = Past<T>{numbers.tensor<T>({c.batch, c.kv_heads, past, c.d_k}),
                     numbers.tensor<T>({c.batch, c.kv_heads, past, c.d_v})};
  }
  MultiHeadParams<T> params = some_params<T>(shape_of(c, bias));
  if (own.bias) {
    params.bias_k = numbers.tensor<T>({c.kv_heads * c.d_k});
    params.bias_v = numbers.tensor<T>({c.kv_heads * c.d_v});
  }
  params.add_zero_attn = own.zero;
  return {.query = numbers.tensor<T>({c.batch, c.n, 7}),
          .key = numbers.tensor<T>({c.batch, m, 5}),
          .value = numbers.tensor<T>({c.batch, m, 6}),
          .grad_output = numbers.tensor<T>({c.batch, c.n, 4}),
          .past = std::move(before),
          .params = std::move(params),
          .attention = draw_case<T>(c)};
}

template <class T>
const Past<T>* past_of(const DrawnLayer<T>& at) {
  return at.past ? &*at.past : nullptr;
}

template <class T>
MultiHeadResult<T> forward(const DrawnLayer<T>& at, const Request& want = {}) {
  return multi_head(at.query, at.key, at.value, at.params, at.attention.mask, at.attention.settings,
                    want, past_of(at));
}

template <class T>
MultiHeadGradients<T> differentiate(const DrawnLayer<T>& at,
                                    const Request& want = all_layer_gradients()) {
  return multi_head_backward(at.query, at.key, at.value, at.params, forward(at), at.grad_output,
                             at.attention.mask, at.attention.settings, want, past_of(at));
}

// A layer's tensor, where it is kept and where its gradient is.
template <class T>
struct Named {
  const char* name;
  Tensor<T>* at;
  std::optional<Tensor<T>>* gradient;
};

template <class T>
std::vector<Named<T>> tensors_of(DrawnLayer<T>& layer, MultiHeadGradients<T>& g) {
  MultiHeadParams<T>& p = layer.params;
  std::vector<Named<T>> all = {{"query", &layer.query, &g.grad_query},
                               {"key", &layer.key, &g.grad_key},
                               {"value", &layer.value, &g.grad_value},
                               {"w_q", &p.w_q, &g.grad_w_q},
                               {"w_k", &p.w_k, &g.grad_w_k},
                               {"w_v", &p.w_v, &g.grad_w_v},
                               {"w_o", &p.w_o, &g.grad_w_o}};
  if (layer.past) {
    all.insert(all.end(), {{"past_k", &layer.past->k, &g.grad_past_k},
                           {"past_v", &layer.past->v, &g.grad_past_v}});
  }
  if (p.bias_k) {
    all.insert(all.end(),
               {{"bias_k", &*p.bias_k, &g.grad_bias_k}, {"bias_v", &*p.bias_v, &g.grad_bias_v}});
  }
  if (!p.b_q) return all;
  all.insert(all.end(), {{"b_q", &*p.b_q, &g.grad_b_q},
                         {"b_k", &*p.b_k, &g.grad_b_k},
                         {"b_v", &*p.b_v, &g.grad_b_v},
                         {"b_o", &*p.b_o, &g.grad_b_o}});
  return all;
}

}  // namespace attnlab::test
