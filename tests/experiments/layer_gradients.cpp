// multihead with --grad-output: which gradients there are for each form of the inputs, and the
// forms they come in.

#include "attnlab/experiments/layer_gradients.h"

#include <limits>
#include <utility>

#include "attnlab/core/random.h"
#include "attnlab/experiments/multihead.h"
#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

Request every_gradient() {
  Request request;
  for (const ResultRef& gradient : columns_of<LayerGradients>()) request.add(gradient.name);
  return request;
}

// The names of the gradients that there are.
std::string present(const MultiheadResult& result) {
  std::string names;
  for (const ResultRef& gradient : result_of(result.gradients)) {
    if (gradient.matrix() != nullptr) names += std::string(gradient.name) + ' ';
  }
  return names;
}

TensorSource drawn(const Shape& shape, std::uint64_t trial) {
  Tensor<float> tensor(shape);
  fill_normal(tensor.values(), 7, Stream::sample_x, trial);
  return {.path = {}, .values = AnyTensor(tensor).cast(DType::float64)};
}

MultiheadOptions self(const Shape& x) {
  MultiheadOptions options;
  options.inputs.x = drawn(x, 1);
  options.sizes.heads = 2;
  options.gradients.grad_output = drawn(x, 2);
  return options;
}

TEST_CASE("two keys and one query through a layer, by hand") {
  MultiheadOptions options;
  options.inputs.query = given<double>({1, 1}, {2});
  options.inputs.key = given<double>({2, 1}, {1, 1});
  options.inputs.value = given<double>({2, 1}, {3, 7});
  options.sizes.heads = 1;
  options.scores.scale = 0.5;
  options.layer.init = Init::normal;
  options.layer.std = 1;
  options.layer.bias = true;
  options.gradients.grad_output = given<double>({1, 1}, {10});
  Request want = every_gradient();
  for (const char* name : {"w_q", "w_k", "w_v", "w_o"}) want.add(name);
  const MultiheadResult r = multihead(options, want);
  const double w_q = r.w_q->at(0), w_k = r.w_k->at(0), w_v = r.w_v->at(0), w_o = r.w_o->at(0);
  // Both weigh 1/2: concat = 5 w_v, grad_v = 5 w_o, and the scores' gradients are -+ 10 w_o w_v.
  const LayerGradients& g = r.gradients;
  CHECK(g.grad_w_o->at(0) == Approx(50 * w_v));
  CHECK(g.grad_b_o->at(0) == 10);
  CHECK(g.grad_w_v->at(0) == Approx(50 * w_o));
  CHECK(g.grad_b_v->at(0) == Approx(10 * w_o));
  CHECK(g.grad_value->at(1) == Approx(5 * w_o * w_v));
  const double grad_score = -10 * w_o * w_v;
  CHECK(g.grad_key->at(0) == Approx(.5 * grad_score * 2 * w_q * w_k));
  CHECK(g.grad_key->at(1) == Approx(-.5 * grad_score * 2 * w_q * w_k));
  CHECK(g.grad_w_k->at(0) == Approx(0).margin(1e-15));
  CHECK(g.grad_w_q->at(0) == Approx(0).margin(1e-15));
  CHECK(g.grad_b_k->at(0) == 0);
}

TEST_CASE("each form of the inputs has its gradients, in the form of the inputs") {
  MultiheadOptions options = self({3, 4});
  options.layer.bias = true;
  const MultiheadResult alone = multihead(options, every_gradient());
  CHECK(present(alone) ==
        "grad_x grad_w_q grad_b_q grad_w_k grad_b_k grad_w_v grad_b_v grad_w_o grad_b_o ");
  CHECK(alone.gradients.grad_x->shape() == Shape{3, 4});
  CHECK(alone.gradients.grad_w_q->shape() == Shape{4, 4});
  CHECK(alone.gradients.grad_b_o->shape() == Shape{4});

  options = self({2, 3, 4});
  options.inputs.memory = drawn({2, 5, 6}, 3);
  const MultiheadResult cross = multihead(options, every_gradient());
  CHECK(present(cross) == "grad_x grad_memory grad_w_q grad_w_k grad_w_v grad_w_o ");
  CHECK(cross.gradients.grad_x->shape() == Shape{2, 3, 4});
  CHECK(cross.gradients.grad_memory->shape() == Shape{2, 5, 6});
  CHECK(cross.gradients.grad_w_k->shape() == Shape{6, 4});

  options = self({3, 4});
  options.inputs.query = std::exchange(options.inputs.x, {});
  options.inputs.key = drawn({5, 6}, 3);
  options.inputs.value = drawn({5, 7}, 4);
  const MultiheadResult apart = multihead(options, every_gradient());
  CHECK(present(apart) == "grad_query grad_key grad_value grad_w_q grad_w_k grad_w_v grad_w_o ");
  CHECK(apart.gradients.grad_query->shape() == Shape{3, 4});
  CHECK(apart.gradients.grad_value->shape() == Shape{5, 7});
}

TEST_CASE("x and the memory have the sum of the gradients of what they are taken as") {
  MultiheadOptions options = self({3, 4});
  const LayerGradients sums = multihead(options, every_gradient()).gradients;
  options.inputs.memory = options.inputs.x;
  const LayerGradients cross = multihead(options, every_gradient()).gradients;
  options.inputs.query = options.inputs.key = options.inputs.value = options.inputs.x;
  options.inputs.x = options.inputs.memory = {};
  const LayerGradients parts = multihead(options, every_gradient()).gradients;
  for (Index i = 0; i < 12; ++i) {
    const double keys_and_values = parts.grad_key->at(i) + parts.grad_value->at(i);
    CHECK(sums.grad_x->at(i) == Approx(parts.grad_query->at(i) + keys_and_values));
    CHECK(cross.grad_x->at(i) == parts.grad_query->at(i));
    CHECK(cross.grad_memory->at(i) == Approx(keys_and_values));
  }
  CHECK(values_of(sums.grad_w_k) == values_of(parts.grad_w_k));
}

TEST_CASE("one gradient is the same alone, and needs no others") {
  MultiheadOptions options = self({3, 4});
  options.inputs.memory = drawn({5, 4}, 3);
  options.layer.bias = true;
  const MultiheadResult all = multihead(options, every_gradient());
  for (const ResultRef& gradient : result_of(all.gradients)) {
    const std::string name(gradient.name);
    INFO(name);
    const MultiheadResult one = multihead(options, {name});
    CHECK(present(one) == (gradient.matrix() == nullptr ? "" : name + ' '));
    if (gradient.matrix() == nullptr) continue;
    for (const ResultRef& got : result_of(one.gradients)) {
      if (got.name != name) continue;
      CHECK(values_of(*got.matrix()) == values_of(*gradient.matrix()));
    }
  }
}

TEST_CASE("a layer's gradients never change its output, and take its precision") {
  MultiheadOptions options;
  options.sizes.n = 3;
  options.sizes.dtype = Precision::bfloat16;
  const MultiheadResult plain = multihead(options, every_gradient());
  CHECK(present(plain).empty());
  options.gradients.grad_output = filled({3, 8}, 1);
  const MultiheadResult asked = multihead(options, every_gradient());
  CHECK(values_of(plain.output) == values_of(asked.output));
  CHECK(asked.gradients.grad_x->dtype() == DType::bfloat16);
  CHECK(asked.gradients.grad_w_o->dtype() == DType::bfloat16);
  options.sizes.dtype = Precision::automatic;
  CHECK(multihead(options, every_gradient()).gradients.grad_w_q->dtype() == DType::float32);
}

TEST_CASE("a layer's gradients go through its role, mask and dropout") {
  MultiheadOptions options = self({4, 4});
  options.role = Role::decoder;
  // The first query alone is asked about, which sees itself only.
  Tensor<double> first({4, 4});
  first.matrix().row(0).setConstant(1);
  options.gradients.grad_output = {.path = {}, .values = AnyTensor(first)};
  const MultiheadResult decoder = multihead(options, {"grad_x"});
  for (Index i = 4; i < 16; ++i) CHECK(decoder.gradients.grad_x->at(i) == 0);
  CHECK(decoder.gradients.grad_x->at(0) != 0);
  options.role = Role::encoder;
  CHECK(multihead(options, {"grad_x"}).gradients.grad_x->at(15) != 0);
  options.scores.dropout = .5;
  const auto dropped = values_of(multihead(options, {"grad_w_v"}).gradients.grad_w_v);
  options.scores.dropout = 0;
  CHECK(values_of(multihead(options, {"grad_w_v"}).gradients.grad_w_v) != dropped);
}

TEST_CASE("a gradient that is not of the layer's output is refused, what is not finite is said") {
  MultiheadOptions options = self({2, 4});
  options.layer.d_model = 6;
  for (const Shape& wrong : {Shape{2, 4}, {1, 2, 6}, {12}, {3, 6}}) {
    options.gradients.grad_output = filled(wrong, 1);
    const std::string text = refusal([&] { multihead(options, {}); });
    INFO(text);
    CHECK(text.find("grad_output: got " + wrong.str()) != std::string::npos);
    CHECK(text.find("[2, 6]") != std::string::npos);
  }
  options.gradients.grad_output = filled({2, 6}, std::numeric_limits<double>::infinity());
  CHECK(mentions(multihead(options, {"grad_w_o"}).notes,
                 "grad_w_o: 36 of 36 values are NaN or infinite"));
}

}  // namespace
}  // namespace attnlab
