#include "attnlab/experiments/layer_check.h"

#include <utility>

#include "attnlab/attention/multi_head_backward.h"
#include "attnlab/experiments/layer_inputs.h"

namespace attnlab {
namespace {

template <class T>
MultiHeadParams<T> params_of(const MultiheadResult& layer) {
  const auto optional = [](const std::optional<AnyTensor>& bias) -> std::optional<Tensor<T>> {
    if (!bias) return std::nullopt;
    return bias->cast<T>();
  };
  return {.heads = layer.call->mask.heads(),
          .kv_heads = layer.call->kv_heads,
          .w_q = layer.w_q->cast<T>(),
          .w_k = layer.w_k->cast<T>(),
          .w_v = layer.w_v->cast<T>(),
          .w_o = layer.w_o->cast<T>(),
          .b_q = optional(layer.b_q),
          .b_k = optional(layer.b_k),
          .b_v = optional(layer.b_v),
          .b_o = optional(layer.b_o),
          .q_norm = optional(layer.q_norm),
          .k_norm = optional(layer.k_norm),
          .qk_norm_eps = layer.call->qk_norm_eps,
          .rope_theta = layer.call->rope_theta,
          .bias_k = optional(layer.bias_k),
          .bias_v = optional(layer.bias_v),
          .add_zero_attn = layer.call->add_zero_attn};
}

// Where a layer is differentiated.
template <class T>
struct Point {
  LayerInputs inputs;
  std::optional<Past<T>> past_tensors;
  MultiHeadParams<T> params;

  Tensor<T> query() const { return with_batch<T>(inputs.queries()); }
  Tensor<T> key() const { return with_batch<T>(inputs.keys()); }
  Tensor<T> value() const { return with_batch<T>(inputs.values()); }
  const Past<T>* past() const { return past_tensors ? &*past_tensors : nullptr; }
  MultiHeadResult<T> forward(const Mask& mask, const AttentionSettings& settings) const {
    return multi_head(query(), key(), value(), params, mask, settings, {}, past());
  }
};

template <class T>
Point<T> point_of(const MultiheadResult& layer) {
  std::optional<Past<T>> past;
  if (layer.call->past) past = layer.call->past->as<T>();
  return {{layer.x, layer.memory, layer.query, layer.key, layer.value},
          std::move(past),
          params_of<T>(layer)};
}

Request all_gradients() {
  Request request;
  for (const ResultRef& gradient : columns_of<LayerGradients>()) request.add(gradient.name);
  return request;
}

template <class T>
LayerGradients differentiate(const MultiheadResult& layer, const AnyTensor& cotangent,
                             std::vector<std::string>& notes) {
  const MultiheadCall& call = *layer.call;
  const Point<T> at = point_of<T>(layer);
  const Request all = all_gradients();
  MultiHeadGradients<T> gradients = multi_head_backward(
      at.query(), at.key(), at.value(), at.params, at.forward(call.mask, call.settings),
      cotangent.cast<T>(), call.mask, call.settings, gradients_computed(at.inputs, all), at.past());
  return layer_gradients(at.inputs, std::move(gradients), call.layout, layer.output->dtype(), all,
                         notes);
}

// The checks of one layer, row by row.
class LayerCheck {
 public:
  LayerCheck(const MultiheadResult& layer, double tolerance, const RunOptions& run,
             const AnyTensor& cotangent)
      : at_(point_of<double>(layer)),
        mask_(layer.call->mask),
        settings_(layer.call->settings),
        cotangent_(cotangent.cast<double>()),
        tolerance_(tolerance),
        threads_(run.threads) {
    // The differences take the threads; every forward pass in them has one.
    settings_.threads = 1;
  }

  void input(std::string_view name, std::optional<AnyTensor> LayerInputs::*member,
             const std::optional<AnyTensor>& gradient) {
    if (!gradient) return;
    check(name, (at_.inputs.*member)->cast<double>(), *gradient,
          [member](Point<double>& point, const Tensor<double>& moved) {
            point.inputs.*member = AnyTensor(moved);
          });
  }

  void weight(std::string_view name, Tensor<double> MultiHeadParams<double>::*member,
              const std::optional<AnyTensor>& gradient) {
    check(name, at_.params.*member, *gradient,
          [member](Point<double>& point, const Tensor<double>& moved) {
            point.params.*member = moved;
          });
  }

  void bias(std::string_view name, std::optional<Tensor<double>> MultiHeadParams<double>::*member,
            const std::optional<AnyTensor>& gradient, double terms = 0) {
    if (!gradient) return;
    check(
        name, *(at_.params.*member), *gradient,
        [member](Point<double>& point, const Tensor<double>& moved) {
          point.params.*member = moved;
        },
        terms);
  }

  void past(std::string_view name, Tensor<double> Past<double>::*member,
            const std::optional<AnyTensor>& gradient) {
    if (!gradient) return;
    check(name, (*at_.past_tensors).*member, *gradient,
          [member](Point<double>& point, const Tensor<double>& moved) {
            (*point.past_tensors).*member = moved;
          });
  }

  std::vector<GradientCheck> rows;

 private:
  template <class Move>
  void check(std::string_view name, const Tensor<double>& centre, const AnyTensor& gradient,
             const Move& move, double terms = 0) {
    const auto output = [&](const Tensor<double>& moved) {
      Point<double> point = at_;
      move(point, moved);
      return point.forward(mask_, settings_).output;
    };
    const Tensor<double> given = gradient.cast<double>();
    rows.push_back(check_by_differences(
        output, centre, cotangent_, threads_, [&](const Differences& differences) {
          return check_gradient(name, given, differences, tolerance_, terms);
        }));
  }

  Point<double> at_;
  const Mask& mask_;
  AttentionSettings settings_;
  Tensor<double> cotangent_;
  double tolerance_;
  Index threads_;
};

}  // namespace

Request checked_matrices() {
  return {"x",   "memory", "query", "key", "value",  "w_q",    "b_q",    "w_k",   "b_k",
          "w_v", "b_v",    "w_o",   "b_o", "q_norm", "k_norm", "bias_k", "bias_v"};
}

std::vector<GradientCheck> check_layer(const MultiheadResult& layer, double tolerance,
                                       const RunOptions& run, std::vector<std::string>& notes) {
  const Mask& mask = layer.call->mask;
  const AnyTensor cotangent = draw_normal({mask.batch(), mask.queries(), layer.output->shape()[-1]},
                                          run.seed, Stream::sample_grad_output);
  const LayerGradients g = visit_compute_type(layer.output->dtype(), [&](auto tag) {
    return differentiate<typename decltype(tag)::type>(layer, cotangent, notes);
  });

  LayerCheck check(layer, tolerance, run, cotangent);
  check.input("x", &LayerInputs::x, g.grad_x);
  check.input("memory", &LayerInputs::memory, g.grad_memory);
  check.input("query", &LayerInputs::query, g.grad_query);
  check.input("key", &LayerInputs::key, g.grad_key);
  check.input("value", &LayerInputs::value, g.grad_value);
  using Params = MultiHeadParams<double>;
  check.weight("w_q", &Params::w_q, g.grad_w_q);
  check.bias("b_q", &Params::b_q, g.grad_b_q);
  check.weight("w_k", &Params::w_k, g.grad_w_k);
  check.bias("b_k", &Params::b_k, g.grad_b_k, check.rows.back().norm);
  check.weight("w_v", &Params::w_v, g.grad_w_v);
  check.bias("b_v", &Params::b_v, g.grad_b_v);
  check.weight("w_o", &Params::w_o, g.grad_w_o);
  check.bias("b_o", &Params::b_o, g.grad_b_o);
  check.bias("q_norm", &Params::q_norm, g.grad_q_norm);
  check.bias("k_norm", &Params::k_norm, g.grad_k_norm);
  check.bias("bias_k", &Params::bias_k, g.grad_bias_k);
  check.bias("bias_v", &Params::bias_v, g.grad_bias_v);
  check.past("past_k", &Past<double>::k, g.grad_past_k);
  check.past("past_v", &Past<double>::v, g.grad_past_v);
  return std::move(check.rows);
}

}  // namespace attnlab
