// attend with --grad-output: where its gradients come from, and the forms they come in.

#include "attnlab/core/random.h"
#include "attnlab/experiments/attend.h"
#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

const Request kGradients = {"grad_q", "grad_k", "grad_v"};

TensorSource drawn(const Shape& shape, std::uint64_t trial) {
  Tensor<float> tensor(shape);
  fill_normal(tensor.values(), 7, Stream::sample_x, trial);
  return {.path = {}, .values = AnyTensor(tensor).cast(DType::float64)};
}

AttendOptions options_of_shapes(const Shape& q, const Shape& k, const Shape& v,
                                const Shape& grad_output) {
  AttendOptions options;
  options.query_key.q = drawn(q, 1);
  options.query_key.k = drawn(k, 2);
  options.value.v = drawn(v, 3);
  options.gradients.grad_output = drawn(grad_output, 4);
  return options;
}

TEST_CASE("two keys and one query, by hand") {
  AttendOptions options;
  options.query_key.q = given<double>({1, 1}, {2});
  options.query_key.k = given<double>({2, 1}, {1, 1});
  options.value.v = given<double>({2, 1}, {3, 7});
  options.gradients.grad_output = given<double>({1, 1}, {10});
  options.scores.scale = 0.5;
  const AttendResult result = attend(options, kGradients);
  // Both weigh 1/2: grad_v = 5, grad_S = 1/4 (30 - 70) = -10, grad_k = scale grad_S q = -10.
  CHECK(values_of(result.gradients.grad_v) == std::vector<double>{5, 5});
  CHECK(values_of(result.gradients.grad_k) == std::vector<double>{-10, 10});
  CHECK(values_of(result.gradients.grad_q) == std::vector<double>{0});
}

TEST_CASE("gradients have the form of their inputs") {
  const auto shapes = [](const Shape& q, const Shape& k, const Shape& v, const Shape& grad_output,
                         std::optional<Index> heads, std::optional<Index> kv_heads) {
    AttendOptions options = options_of_shapes(q, k, v, grad_output);
    options.sizes.heads = heads;
    options.sizes.kv_heads = kv_heads;
    const AttendResult result = attend(options, kGradients);
    CHECK(result.output->shape() == grad_output);
    CHECK(result.gradients.grad_q->shape() == q);
    CHECK(result.gradients.grad_k->shape() == k);
    CHECK(result.gradients.grad_v->shape() == v);
  };
  shapes({2, 4}, {3, 4}, {3, 5}, {2, 5}, {}, {});
  shapes({4, 2, 4}, {2, 3, 4}, {2, 3, 5}, {4, 2, 5}, {}, {});
  shapes({2, 4, 2, 4}, {2, 2, 3, 4}, {2, 2, 3, 5}, {2, 4, 2, 5}, {}, {});
  shapes({2, 8}, {3, 8}, {3, 10}, {2, 10}, 2, {});
  shapes({5, 2, 16}, {5, 3, 8}, {5, 3, 10}, {5, 2, 20}, 4, 2);
}

TEST_CASE("packed heads have the gradients of heads that stand apart") {
  const AttendOptions apart = options_of_shapes({2, 3, 4}, {2, 5, 4}, {2, 5, 6}, {2, 3, 6});
  // [heads, n, d] as [n, heads d].
  const auto pack = [](const TensorSource& source) -> TensorSource {
    const Shape& shape = source.values->shape();
    Tensor<double> packed({shape[1], shape[0] * shape[2]});
    for (Index h = 0; h < shape[0]; ++h) {
      packed.matrix().middleCols(h * shape[2], shape[2]) = source.values->get<double>().matrix(h);
    }
    return {.path = {}, .values = AnyTensor(std::move(packed))};
  };
  AttendOptions packed;
  packed.sizes.heads = 2;
  packed.query_key.q = pack(apart.query_key.q);
  packed.query_key.k = pack(apart.query_key.k);
  packed.value.v = pack(apart.value.v);
  packed.gradients.grad_output = pack(apart.gradients.grad_output);
  const InputGradients expected = attend(apart, kGradients).gradients;
  const InputGradients got = attend(packed, kGradients).gradients;
  for (const auto& [a, b] : {std::pair(&expected.grad_q, &got.grad_q),
                             {&expected.grad_k, &got.grad_k},
                             {&expected.grad_v, &got.grad_v}}) {
    CHECK(values_of(pack({.path = {}, .values = *a}).values) == values_of(*b));
  }
}

TEST_CASE("a past has gradients of its own") {
  AttendOptions whole = options_of_shapes({3, 4}, {7, 4}, {7, 5}, {3, 5});
  const auto rows = [](const TensorSource& source, Index first, Index count) -> TensorSource {
    Tensor<double> part({count, source.values->shape()[1]});
    part.matrix() = source.values->get<double>().matrix().middleRows(first, count);
    return {.path = {}, .values = AnyTensor(std::move(part))};
  };
  AttendOptions split = whole;
  split.value.past.k = rows(whole.query_key.k, 0, 2);
  split.value.past.v = rows(whole.value.v, 0, 2);
  split.query_key.k = rows(whole.query_key.k, 2, 5);
  split.value.v = rows(whole.value.v, 2, 5);
  const Request all = {"grad_k", "grad_v", "grad_past_k", "grad_past_v"};
  const InputGradients expected = attend(whole, all).gradients;
  const InputGradients got = attend(split, all).gradients;
  CHECK(got.grad_k->shape() == Shape{5, 4});
  CHECK(got.grad_past_v->shape() == Shape{2, 5});
  const auto joined = [](const std::optional<AnyTensor>& a, const std::optional<AnyTensor>& b) {
    std::vector<double> values = values_of(a);
    for (const double value : values_of(b)) values.push_back(value);
    return values;
  };
  CHECK(joined(got.grad_past_k, got.grad_k) == values_of(expected.grad_k));
  CHECK(joined(got.grad_past_v, got.grad_v) == values_of(expected.grad_v));
  CHECK_FALSE(expected.grad_past_k.has_value());
  CHECK_FALSE(attend(split, {"grad_past_k"}).gradients.grad_k.has_value());
}

TEST_CASE("a gradient never changes the output, nor its precision") {
  AttendOptions options;
  options.sizes.n = 3;
  options.sizes.d_v = 2;
  options.sizes.dtype = Precision::bfloat16;
  const AttendResult plain = attend(options, kGradients);
  CHECK_FALSE(plain.gradients.grad_q.has_value());
  options.gradients.grad_output = filled({3, 2}, 1);
  const AttendResult asked = attend(options, kGradients);
  CHECK(values_of(plain.output) == values_of(asked.output));
  CHECK(asked.gradients.grad_q->dtype() == DType::bfloat16);
  options.sizes.dtype = Precision::automatic;
  CHECK(attend(options, kGradients).gradients.grad_v->dtype() == DType::float32);
}

TEST_CASE("dropout drops the same weights in both passes") {
  AttendOptions options;
  options.sizes.n = 1;
  options.sizes.m = 64;
  options.sizes.d_v = 1;
  options.scores.dropout = .5;
  options.gradients.grad_output = filled({1, 1}, 1);
  const AttendResult result = attend(options, {"v", "weights", "grad_v"});
  // With one query grad_v are its dropped weights.
  double output = 0;
  Index dropped = 0;
  for (Index j = 0; j < 64; ++j) {
    const double weight = result.gradients.grad_v->at(j);
    dropped += weight == 0 ? 1 : 0;
    output += weight * result.v->at(j);
  }
  CHECK(output == Approx(result.output->at(0)).epsilon(1e-5));
  CHECK((dropped > 10 && dropped < 54));
}

TEST_CASE("a gradient that is not of the output is refused, and what is not finite is said") {
  AttendOptions options = options_of_shapes({2, 8}, {3, 8}, {3, 10}, {2, 10});
  options.sizes.heads = 2;
  CHECK(refusal([&] { attend(options, {}); }).empty());
  for (const Shape& wrong : {Shape{2, 8}, {1, 2, 10}, {2, 2, 5}, {20}}) {
    options.gradients.grad_output = filled(wrong, 1);
    const std::string text = refusal([&] { attend(options, {}); });
    INFO(text);
    CHECK(text.find("grad_output: got " + wrong.str()) != std::string::npos);
    CHECK(text.find("[2, 10]") != std::string::npos);
  }
  options.gradients.grad_output = filled({2, 10}, std::numeric_limits<double>::infinity());
  CHECK(mentions(attend(options, {"grad_v"}).notes, "grad_v: 30 of 30 values are NaN or infinite"));
}

}  // namespace
}  // namespace attnlab
