// Small cases whose answers were worked out by hand: what goes wrong in software of this kind.

#include "attention/attention_test.h"

namespace attnlab {
namespace {

using test::close;
using test::doubles;
using test::no_mask;
using test::same_bits;

const double kInverseRoot2 = 1 / std::sqrt(2.0);

Tensor<double> column(std::initializer_list<double> values) {
  Tensor<double> t({1, 1, static_cast<Index>(values.size()), 1});
  std::copy(values.begin(), values.end(), t.data());
  return t;
}

// Q = 0 over n queries, so that each weight is 1 / the number of keys seen; V = 1, 2, ..., m.
Tensor<double> mean_of_keys(Index n, Index m, const Mask& mask) {
  Tensor<double> v({1, 1, m, 1});
  for (Index j = 0; j < m; ++j) v[j] = static_cast<double>(j + 1);
  const Tensor<double> q({1, 1, n, 2});
  const Tensor<double> k({1, 1, m, 2}, 1.0);
  return scaled_dot_product(q, k, v, mask, {}).output;
}

TEST_CASE("a fully masked row is zero and counted, the other rows are as ever") {
  const Tensor<double> eye({1, 1, 2, 2}, {1, 0, 0, 1});
  const Tensor<double> v({1, 1, 2, 2}, {1, 2, 3, 4});
  Mask mask = no_mask(eye, eye);
  mask.set_boolean(Tensor<bool>({2, 2}, {true, true, false, false}));
  const auto result = scaled_dot_product(eye, eye, v, mask, {.scale = kInverseRoot2}, {"weights"});
  CHECK(close(*result.weights, {.669762, .330238, 0, 0}, 1e-6));
  CHECK(close(result.output, {1.660477, 2.660477, 0, 0}, 1e-6));
  CHECK(result.output[2] == 0);
  CHECK(result.empty_rows == 1);
}

TEST_CASE("an additive mask of -1e9 on a whole row is arithmetic, not masking") {
  const auto weights = [](auto tag) {
    using T = decltype(tag);
    const Tensor<T> q({1, 1, 1, 2}, {1, 0});
    const Tensor<T> k({1, 1, 2, 2}, {1, 0, 0, 1});
    Mask mask = no_mask(q, k);
    mask.set_additive(Tensor<T>({2}, T(-1e9)));
    const auto result = scaled_dot_product(q, k, k, mask, {.scale = kInverseRoot2}, {"weights"});
    CHECK(result.empty_rows == 0);
    return doubles(*result.weights);
  };
  CHECK(weights(0.0)[0] == Approx(.669762).epsilon(1e-6));
  CHECK(weights(0.0f) == std::vector<double>{.5, .5});
}

TEST_CASE("a causal mask leaks nothing where a finite fill would") {
  const Tensor<double> q = column({100, 100}), k = column({-150, 1}), v = column({1, 2});
  Mask mask = no_mask(q, k);
  mask.set_causal();
  const auto result = scaled_dot_product(q, k, v, mask, {}, {"weights"});
  CHECK((*result.weights)[0] == 1);
  CHECK((*result.weights)[1] == 0);
}

TEST_CASE("a padding mask of the lowest float32 and a causal mask leave every row finite") {
  const float lowest = std::numeric_limits<float>::lowest();
  test::Numbers numbers;
  const auto q = numbers.tensor<float>({1, 1, 4, 3});
  Mask mask = no_mask(q, q);
  mask.set_causal();
  mask.set_additive(Tensor<float>({4}, {lowest, 0, lowest, 0}));
  const auto result = scaled_dot_product(q, q, q, mask, {}, {"weights"});
  const auto weights = result.weights->matrix();
  CHECK(weights(0, 0) == 1);  // its only key: padded, but not masked
  CHECK(weights(1, 1) == 1);
  CHECK(weights(2, 1) == 1);
  CHECK(weights(3, 1) + weights(3, 3) == Approx(1));
  for (const float value : result.output.values()) CHECK(std::isfinite(value));
  for (Index i = 0; i < 4; ++i) {
    for (Index j = i + 1; j < 4; ++j) CHECK(weights(i, j) == 0);
  }
}

TEST_CASE("with fewer queries than keys the offset says which causal mask is meant") {
  Mask top_left(1, 1, 2, 5);
  top_left.set_causal();
  CHECK(close(mean_of_keys(2, 5, top_left), {1, 1.5}, 1e-15));
  Mask bottom_right(1, 1, 2, 5);
  bottom_right.set_causal();
  bottom_right.set_offset(3);
  CHECK(close(mean_of_keys(2, 5, bottom_right), {2.5, 3}, 1e-15));
}

TEST_CASE("a boolean mask shows where it is true, and its opposite is another answer") {
  Tensor<bool> lower({3, 3}, {true, false, false, true, true, false, true, true, true});
  Mask attend(1, 1, 3, 3);
  attend.set_boolean(lower);
  CHECK(close(mean_of_keys(3, 3, attend), {1, 1.5, 2}, 1e-15));
  for (bool& value : lower.values()) value = !value;
  Mask ignore(1, 1, 3, 3);
  ignore.set_boolean(lower);
  CHECK(close(mean_of_keys(3, 3, ignore), {2.5, 3, 0}, 1e-15));
}

TEST_CASE("an additive mask is added, also one of 0 and 1") {
  const Tensor<double> q({1, 1, 3, 1});
  Mask mask = no_mask(q, q);
  mask.set_additive(Tensor<double>({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}));
  const auto result = scaled_dot_product(q, q, column({1, 2, 3}), mask, {}, {"weights"});
  const std::vector<double> weights = doubles(*result.weights);
  CHECK(weights[0] == Approx(.576117).epsilon(1e-6));
  CHECK(weights[1] == Approx(.211942).epsilon(1e-5));
  CHECK(close(result.output, {1.635825, 1.733044, 2}, 1e-6));
}

TEST_CASE("causal and padding masks compose") {
  Mask mask(1, 1, 3, 3);
  mask.set_causal();
  mask.set_boolean(Tensor<bool>({3}, {false, true, true}));
  CHECK(close(mean_of_keys(3, 3, mask), {0, 2, 2.5}, 1e-15));
}

TEST_CASE("query heads use their key and value heads in order") {
  const Tensor<double> q({1, 4, 1, 1}, 1.0), k({1, 2, 1, 1}, 1.0);
  const Tensor<double> v({1, 2, 1, 1}, {10, 20});
  const auto result = scaled_dot_product(q, k, v, no_mask(q, k), {});
  CHECK(doubles(result.output) == std::vector<double>{10, 10, 20, 20});
}

TEST_CASE("the order is scale, softcap, mask, softmax") {
  const Tensor<double> q = column({1}), k = column({.5, 1});
  Mask mask = no_mask(q, k);
  const AttentionSettings settings{.scale = 2, .softcap = 2};
  const auto open = scaled_dot_product(q, k, k, mask, settings, {"weights"});
  CHECK(close(*open.weights, {.354583, .645417}, 1e-6));
  mask.set_boolean(Tensor<bool>({2}, {true, false}));
  const auto masked = scaled_dot_product(q, k, k, mask, settings, test::kAllMatrices);
  CHECK(doubles(*masked.weights) == std::vector<double>{1, 0});
  CHECK(doubles(*masked.raw_scores) == std::vector<double>{.5, 1});
  CHECK(doubles(*masked.scores) == std::vector<double>{1, 2});
  CHECK(close(*masked.capped_scores, {2 * std::tanh(.5), 2 * std::tanh(1.0)}, 1e-15));
  CHECK(close(*masked.masked_scores, {2 * std::tanh(.5), -test::kInfinity}, 1e-15));
}

TEST_CASE("a sliding window does not count self") {
  Mask mask(1, 1, 5, 5);
  mask.set_causal();
  mask.set_window(2, -1);
  CHECK(close(mean_of_keys(5, 5, mask), {1, 1.5, 2, 3, 4}, 1e-15));
  mask.set_window(3, -1);
  CHECK(close(mean_of_keys(5, 5, mask), {1, 1.5, 2, 2.5, 3.5}, 1e-15));
}

TEST_CASE("the scale multiplies the scores, 1, 0 and negative numbers as they are") {
  const Tensor<double> q({1, 1, 1, 4}, 1.0);
  const Tensor<double> k({1, 1, 2, 4}, {1, 1, 1, 1, 0, 0, 0, 0});
  const auto first_weight = [&](double scale) {
    const auto result =
        scaled_dot_product(q, k, k, no_mask(q, k), {.scale = scale}, {"scores", "weights"});
    CHECK((*result.scores)[0] == 4 * scale);
    return (*result.weights)[0];
  };
  CHECK(first_weight(1 / std::sqrt(4.0)) == Approx(.880797).epsilon(1e-6));
  CHECK(first_weight(1 / std::sqrt(8.0)) == Approx(.804430).epsilon(1e-6));
  CHECK(first_weight(1) == Approx(.982014).epsilon(1e-6));
  CHECK(first_weight(.25) == Approx(.731059).epsilon(1e-6));
  CHECK(first_weight(0) == .5);
  CHECK(first_weight(-1) == Approx(1 - .982014).epsilon(1e-4));
}

TEST_CASE("key lengths end the keys of each batch entry") {
  const Tensor<double> q({2, 1, 4, 1}), v({2, 1, 4, 1}, 1.0);
  Mask mask = no_mask(q, q);
  mask.set_key_lengths({2, 4});
  const auto result = scaled_dot_product(q, q, v, mask, {}, {"weights"});
  for (Index i = 0; i < 4; ++i) {
    CHECK(result.weights->matrix(0)(i, 1) == .5);
    CHECK(result.weights->matrix(0)(i, 2) == 0);
    CHECK(result.weights->matrix(1)(i, 3) == .25);
  }
}

TEST_CASE("no keys give zeros, no queries nothing, one of each the value") {
  const Tensor<double> some({2, 3, 4, 5}, 1.0), none({2, 3, 0, 5});
  const auto no_keys = scaled_dot_product(some, none, none, no_mask(some, none), {}, {"weights"});
  CHECK(no_keys.output.shape() == Shape{2, 3, 4, 5});
  CHECK(close(no_keys.output, std::vector<double>(120, 0), 0));
  CHECK(no_keys.weights->shape() == Shape{2, 3, 4, 0});
  CHECK(no_keys.empty_rows == 24);
  const auto no_queries =
      scaled_dot_product(none, some, some, no_mask(none, some), {}, test::kAllMatrices);
  CHECK(no_queries.output.shape() == Shape{2, 3, 0, 5});
  CHECK(no_queries.weights->shape() == Shape{2, 3, 0, 4});
  CHECK(no_queries.empty_rows == 0);
  const Tensor<double> no_batch({0, 3, 4, 5});
  CHECK(scaled_dot_product(no_batch, no_batch, no_batch, no_mask(no_batch, no_batch), {})
            .output.shape() == Shape{0, 3, 4, 5});

  test::Numbers numbers;
  const auto q = numbers.tensor<double>({1, 1, 1, 3}), v = numbers.tensor<double>({1, 1, 1, 5});
  const auto one = scaled_dot_product(q, q, v, no_mask(q, q), {}, {"weights"});
  CHECK((*one.weights)[0] == 1);
  CHECK(same_bits(one.output, v));
  const Tensor<double> no_width({1, 1, 1, 0});
  CHECK(scaled_dot_product(q, q, no_width, no_mask(q, q), {}).output.shape() == Shape{1, 1, 1, 0});
}

TEST_CASE("saturated scores give exact weights in float32") {
  const Tensor<float> q({1, 1, 1, 1}, 1.0f);
  const Tensor<float> k({1, 1, 5, 1}, {-249.87f, -424.13f, -460.29f, 378.10f, -292.61f});
  const auto result = scaled_dot_product(q, k, k, no_mask(q, k), {}, {"weights"});
  CHECK(doubles(*result.weights) == std::vector<double>{0, 0, 0, 1, 0});
  const Tensor<float> equal({1, 1, 3, 1}, 1000.0f);
  const auto thirds = scaled_dot_product(q, equal, equal, no_mask(q, equal), {}, {"weights"});
  CHECK(close(*thirds.weights, std::vector<double>(3, 1 / 3.0), 3e-8));
  const Tensor<float> huge({1, 1, 2, 1}, {1e10f, 0});
  const auto hot =
      scaled_dot_product(q, huge, huge, no_mask(q, huge), {.scale = 1 / .3}, {"weights"});
  CHECK(doubles(*hot.weights) == std::vector<double>{1, 0});
}

TEST_CASE("past keys and values stand before the current ones of their head") {
  const Tensor<double> past({1, 2, 1, 2}, {1, 2, 3, 4});
  const Tensor<double> current({1, 2, 2, 2}, {5, 6, 7, 8, 9, 10, 11, 12});
  const auto all = append_keys(past, current, "past_k");
  CHECK(all.shape() == Shape{1, 2, 3, 2});
  CHECK(doubles(all) == std::vector<double>{1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12});
  CHECK(same_bits(append_keys(Tensor<double>({1, 2, 0, 2}), current, "past_k"), current));
}

}  // namespace
}  // namespace attnlab
