// Calls into the result of an earlier one: the same bits, in the same memory where it fits.

#include "attnlab/attention/earlier_result.h"

#include "attention/reference_case.h"

namespace attnlab {
namespace {

using test::Case;
using test::draw_case;
using test::same_bits;

const Request kAll = test::kAllMatrices;

template <class T>
void spoil(AttentionResult<T>& result) {
  for (auto* matrix : {&result.raw_scores, &result.scores, &result.capped_scores,
                       &result.masked_scores, &result.weights}) {
    if (*matrix) std::ranges::fill((*matrix)->values(), std::numeric_limits<T>::quiet_NaN());
  }
  std::ranges::fill(result.output.values(), std::numeric_limits<T>::quiet_NaN());
  result.empty_rows = result.overflowed_rows = 1000;
}

template <class T>
void check_same(const AttentionResult<T>& got, const AttentionResult<T>& expected) {
  CHECK(same_bits(got.output, expected.output));
  const auto check = [](const std::optional<Tensor<T>>& a, const std::optional<Tensor<T>>& b) {
    REQUIRE(a.has_value() == b.has_value());
    if (a) CHECK(same_bits(*a, *b));
  };
  check(got.raw_scores, expected.raw_scores);
  check(got.scores, expected.scores);
  check(got.capped_scores, expected.capped_scores);
  check(got.masked_scores, expected.masked_scores);
  check(got.weights, expected.weights);
  CHECK(got.empty_rows == expected.empty_rows);
  CHECK(got.overflowed_rows == expected.overflowed_rows);
}

TEST_CASE("attention into an earlier result is that of a new one, and leaves what is not wanted") {
  // Rows that see no key, keys that no row sees: what is written over has no part in it.
  Case c{.batch = 2, .heads = 2, .kv_heads = 1, .n = 70, .m = 300, .d_k = 5, .d_v = 3};
  c.causal = c.lengths = c.boolean = true;
  for (const Kernel kernel : {Kernel::tiled, Kernel::full}) {
    auto drawn = draw_case<float>(c);
    drawn.settings.kernel = kernel;
    const auto attend = [&](const Request& want) {
      return scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, want);
    };
    AttentionResult<float> result = attend(kAll);
    const float *weights = result.weights->data(), *output = result.output.data();
    for (const Request& want : {kAll, Request{"weights", "scores"}, Request{"weights"}}) {
      spoil(result);
      scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, want, result);
      check_same(result, attend(want));
      CHECK(result.weights->data() == weights);
      CHECK(result.output.data() == output);
    }
    for (const Request& want : {Request{}, kAll}) {
      spoil(result);
      scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, want, result);
      check_same(result, attend(want));
    }
  }
}

TEST_CASE("a result whose tensors were moved away is as good as an empty one") {
  const auto drawn = draw_case<float>({.n = 4, .m = 8, .d_k = 3, .d_v = 2});
  const auto attend = [&](AttentionResult<float>& into) {
    scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, kAll, into);
  };
  AttentionResult<float> result, expected;
  attend(result);
  attend(expected);
  const Tensor<float> output = std::move(result.output);
  const Tensor<float> weights = *std::move(result.weights);
  attend(result);
  check_same(result, expected);
  CHECK(same_bits(output, expected.output));
  CHECK(same_bits(weights, *expected.weights));
}

TEST_CASE("a result of other shapes is no hindrance") {
  AttentionResult<float> result;
  for (const Index n : {7, 3, 3, 9}) {
    for (const Index d_v : {4, 5}) {
      const auto drawn = draw_case<float>({.heads = 2, .n = n, .m = 8, .d_k = 3, .d_v = d_v});
      scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, kAll, result);
      check_same(result,
                 scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, kAll));
    }
  }
}

TEST_CASE("gradients into earlier ones are those of new ones") {
  Case c{.batch = 2, .heads = 4, .kv_heads = 2, .n = 70, .m = 130, .d_k = 5, .d_v = 3};
  c.causal = c.lengths = true;
  for (const Kernel kernel : {Kernel::tiled, Kernel::full}) {
    auto drawn = draw_case<float>(c);
    drawn.settings.kernel = kernel;
    const auto grad_output = test::Numbers(5).tensor<float>({2, 4, 70, 3});
    const auto differentiate = [&](const Request& want, AttentionGradients<float>& into) {
      scaled_dot_product_backward(drawn.q, drawn.k, drawn.v, grad_output, drawn.mask,
                                  drawn.settings, want, into);
    };
    AttentionGradients<float> expected, got;
    const Request all = {"grad_q", "grad_k", "grad_v"};
    differentiate(all, expected);
    got.grad_q = Tensor<float>({3});
    differentiate(all, got);
    const float* grad_k = got.grad_k->data();
    differentiate(all, got);
    CHECK(got.grad_k->data() == grad_k);
    CHECK(same_bits(*got.grad_q, *expected.grad_q));
    CHECK(same_bits(*got.grad_k, *expected.grad_k));
    CHECK(same_bits(*got.grad_v, *expected.grad_v));
    differentiate({"grad_v"}, got);
    CHECK_FALSE(got.grad_q);
    CHECK_FALSE(got.grad_k);
    CHECK(same_bits(*got.grad_v, *expected.grad_v));
  }
}

template <class T>
void check_same(const std::optional<Tensor<T>>& got, const std::optional<Tensor<T>>& expected) {
  REQUIRE(got.has_value() == expected.has_value());
  if (got) CHECK(same_bits(*got, *expected));
}

TEST_CASE("a layer into an earlier result keeps its matrices, and nothing that it has not") {
  const Tensor<double> x = test::Numbers(3).tensor<double>({1, 9, 8});
  const MultiHeadShape shape{8, 8, 8, 8, 2, 2, 4, 4};
  auto params = draw_multi_head<double>(shape, Init::xavier_uniform, 1, 7);
  Mask mask(1, 2, 9, 9);
  mask.set_causal();
  const Past<double>* no_past = nullptr;
  const auto layer = [&](MultiHeadResult<double>& into) {
    multi_head(x, x, x, params, mask, {}, {"weights", "present_k"}, no_past, into);
  };
  MultiHeadResult<double> result, expected;
  params.rope_theta = 100.0;
  layer(result);
  const double* weights = result.attention.weights->data();
  params.rope_theta.reset();
  layer(result);
  layer(expected);
  CHECK(result.attention.weights->data() == weights);
  CHECK_FALSE(result.rotated_q);
  CHECK(same_bits(result.output, expected.output));
  check_same(result.attention, expected.attention);
  check_same(result.present_k, expected.present_k);
  // A key of the layer's own changes the shape.
  params.add_zero_attn = true;
  expected = {};
  layer(result);
  layer(expected);
  CHECK(same_bits(result.output, expected.output));
  check_same(result.attention, expected.attention);
}

}  // namespace
}  // namespace attnlab
