// multihead with a past: a decoder's step, and cross-attention that keeps a memory's keys.

#include "attnlab/core/random.h"
#include "attnlab/experiments/gradcheck.h"
#include "attnlab/experiments/multihead.h"
#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

const Request kPresent = {"present_k", "present_v"};

TensorSource drawn(const Shape& shape, std::uint64_t trial) {
  Tensor<float> tensor(shape);
  fill_normal(tensor.values(), 7, Stream::sample_x, trial);
  return {.path = {}, .values = AnyTensor(tensor).cast(DType::float64)};
}

// Rows [first, first + count) of a matrix.
TensorSource rows(const TensorSource& of, Index first, Index count) {
  const Tensor<double>& all = of.values->get<double>();
  Tensor<double> part({count, all.shape()[1]});
  part.matrix() = all.matrix().middleRows(first, count);
  return {.path = {}, .values = AnyTensor(std::move(part))};
}

MultiheadOptions layer_of(const TensorSource& x) {
  MultiheadOptions options;
  options.inputs.x = x;
  options.sizes.heads = 4;
  options.sizes.kv_heads = 2;
  options.layer.d_model = 8;
  options.layer.bias = true;
  return options;
}

void set_past(MultiheadOptions& options, const MultiheadResult& before) {
  options.past.k.values = before.present_k;
  options.past.v.values = before.present_v;
}

std::vector<double> last_row(const std::optional<AnyTensor>& matrix) {
  const std::vector<double> values = values_of(matrix);
  return {values.end() - static_cast<std::ptrdiff_t>(matrix->shape()[-1]), values.end()};
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(1e-13));
}

TEST_CASE("a decoder's last step, given the past, gives the last row of the whole") {
  const TensorSource x = drawn({6, 8}, 1);
  MultiheadOptions options = layer_of(x);
  options.role = Role::decoder;
  options.mask.window_left = 2;
  const MultiheadResult whole = multihead(options, {"present_k", "present_v", "weights", "k"});
  options.inputs.x = rows(x, 0, 5);
  const MultiheadResult before = multihead(options, kPresent);
  CHECK(before.present_k->shape() == Shape{1, 2, 5, 2});
  options.inputs.x = rows(x, 5, 1);
  set_past(options, before);
  const MultiheadResult step = multihead(options, {"present_k", "present_v", "weights", "k"});
  CHECK(step.k->shape() == Shape{2, 1, 2});
  CHECK(step.present_k->shape() == Shape{1, 2, 6, 2});
  CHECK(step.attention.weights->shape() == Shape{4, 1, 6});
  check_close(values_of(step.output), last_row(whole.output));
  check_close(values_of(step.present_k), values_of(whole.present_k));
  check_close(values_of(step.present_v), values_of(whole.present_v));
  CHECK(mentions(step.notes, "after the 5 past keys: query 0 stands at key 5"));
  CHECK(values_of(whole.present_k) == values_of(whole.k));
}

TEST_CASE("without a memory, cross-attention sees the past alone") {
  const TensorSource x = drawn({3, 8}, 1), memory = drawn({5, 8}, 2);
  MultiheadOptions options = layer_of(x);
  options.inputs.memory = memory;
  const MultiheadResult first = multihead(options, {"present_k", "present_v"});
  options.inputs.memory = {};
  set_past(options, first);
  options.role = Role::cross;
  const MultiheadResult second = multihead(options, {"present_k", "weights", "memory"});
  CHECK(values_of(second.output) == values_of(first.output));
  CHECK(values_of(second.present_k) == values_of(first.present_k));
  CHECK(second.attention.weights->shape() == Shape{4, 3, 5});
  CHECK(second.memory->shape() == Shape{0, 8});
  // As self-attention the keys of x come behind them.
  options.role = Role::automatic;
  CHECK(multihead(options, {"weights"}).attention.weights->shape() == Shape{4, 3, 8});
  // And those of a memory that goes on.
  options.inputs.memory = rows(memory, 0, 2);
  CHECK(multihead(options, {"weights"}).attention.weights->shape() == Shape{4, 3, 7});
}

TEST_CASE("a drawn x may cross-attend to a past") {
  MultiheadOptions options;
  options.role = Role::cross;
  options.sizes.n = 3;
  options.past.k = drawn({1, 2, 4, 4}, 1);
  options.past.v = drawn({1, 2, 4, 4}, 2);
  const MultiheadResult result = multihead(options, {"weights"});
  CHECK(result.attention.weights->shape() == Shape{2, 3, 4});
  CHECK(result.output->dtype() == DType::float64);
  options.sizes.m = 4;
  CHECK(refusal([&] { multihead(options, {}); }).find("m: got 4, is of a memory") !=
        std::string::npos);
}

TEST_CASE("a past of a layer is refused where it does not fit") {
  MultiheadOptions options = layer_of(drawn({3, 8}, 1));
  const auto refused = [&](const Shape& k, const Shape& v) {
    options.past.k = filled(k, 1);
    options.past.v = filled(v, 1);
    return refusal([&] { multihead(options, {}); });
  };
  CHECK(refused({1, 2, 4, 2}, {1, 2, 4, 2}).empty());
  CHECK(refused({2, 4, 2}, {2, 4, 2}).empty());
  const std::string heads = refused({1, 4, 4, 2}, {1, 4, 4, 2});
  CHECK(heads.find("past_k: got [1, 4, 4, 2], need [batch, kv_heads, p, d_k] = [1, 2, p, 2]") !=
        std::string::npos);
  CHECK(refused({2, 2, 4, 2}, {1, 2, 4, 2}).find("past_k: got [2, 2, 4, 2]") != std::string::npos);
  CHECK(refused({1, 2, 4, 2}, {1, 2, 4, 3}).find("past_v: got [1, 2, 4, 3]") != std::string::npos);
  CHECK(refused({1, 2, 4, 2}, {1, 2, 5, 2}).find("past_v: got p = 5") != std::string::npos);
  options.past.k = {};
  CHECK(refusal([&] { multihead(options, {}); }).find("past_k: is needed") != std::string::npos);
  options.past = {};
  options.role = Role::cross;
  CHECK(refusal([&] { multihead(options, {}); }).find("needs a memory, or the past") !=
        std::string::npos);
}

TEST_CASE("a past takes its part in the precision") {
  MultiheadOptions options;
  options.sizes.n = 2;
  options.past.k = filled({1, 2, 1, 4}, 1.0 / 3);
  options.past.v = filled({1, 2, 1, 4}, 1.0 / 3);
  CHECK(multihead(options, {}).output->dtype() == DType::float64);
  options.sizes.dtype = Precision::bfloat16;
  const MultiheadResult result = multihead(options, kPresent);
  CHECK(result.present_k->at(0) == static_cast<double>(static_cast<float>(BFloat16(1.0f / 3))));
  options.sizes.dtype = Precision::float16;
  options.past.v = filled({1, 2, 1, 4}, 1e6);
  CHECK(mentions(multihead(options, {}).notes, "past_v"));
}

TEST_CASE("the past of a layer has gradients, those of attend of the layer's heads") {
  MultiheadOptions options = layer_of(drawn({2, 3, 8}, 1));
  options.past.k = drawn({2, 2, 4, 2}, 2);
  options.past.v = drawn({2, 2, 4, 2}, 3);
  options.gradients.grad_output = drawn({2, 3, 8}, 4);
  const MultiheadResult result =
      multihead(options, {"grad_past_k", "grad_past_v", "grad_x", "grad_b_k"});
  CHECK(result.gradients.grad_past_k->shape() == Shape{2, 2, 4, 2});
  CHECK(result.gradients.grad_past_v->shape() == Shape{2, 2, 4, 2});
  const MultiheadResult alone = multihead(options, {"grad_past_v"});
  CHECK(values_of(alone.gradients.grad_past_v) == values_of(result.gradients.grad_past_v));
  CHECK_FALSE(alone.gradients.grad_past_k);
  // The past is not moved by b_k, so that b_k does not move all scores of a row alike.
  CHECK(std::abs(result.gradients.grad_b_k->at(0)) > 1e-3);
}

TEST_CASE("the gradients of a layer with a past are checked against differences") {
  GradcheckOptions options;
  options.inputs.x = drawn({2, 8}, 1);
  options.sizes.heads = 4;
  options.sizes.kv_heads = 2;
  options.layer.bias = true;
  options.value.past.k = drawn({1, 2, 3, 2}, 2);
  options.value.past.v = drawn({1, 2, 3, 2}, 3);
  options.mask.causal = true;
  for (const Role role : {Role::automatic, Role::cross}) {
    options.role = role;
    const GradcheckResult result = gradcheck(options, {});
    CHECK(result.passed);
    REQUIRE(result.rows.size() == (role == Role::cross ? 12 : 11));
    CHECK(result.rows.back().tensor == "past_v");
    CHECK(result.rows.back().norm > .1);
    CHECK(result.rows.end()[-2].tensor == "past_k");
    CHECK(result.rows.end()[-2].norm > 1e-3);
  }
}

}  // namespace
}  // namespace attnlab
