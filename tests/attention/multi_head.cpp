#include "attnlab/attention/multi_head.h"

#include <algorithm>

#include "attention/layer_case.h"

namespace attnlab {
namespace {

using test::close;
using test::doubles;
using test::error_of;
using test::kGrouped;
using test::same_bits;
using test::says;
using test::some_params;

// x W + b by loops over one row.
double projected(const Tensor<double>& x, Index row, const Tensor<double>& w,
                 const std::optional<Tensor<double>>& b, Index column) {
  const Index in = w.shape()[0], out = w.shape()[1];
  double sum = b ? (*b)[column] : 0;
  for (Index i = 0; i < in; ++i) sum += x[row * in + i] * w[i * out + column];
  return sum;
}

TEST_CASE("a layer is projection, attention of each head, concatenation, projection") {
  const Index batch = 2, n = 70, m = 9;
  test::Numbers numbers;
  const auto query = numbers.tensor<double>({batch, n, 7});
  const auto key = numbers.tensor<double>({batch, m, 5});
  const auto value = numbers.tensor<double>({batch, m, 6});
  for (const bool bias : {false, true}) {
    MultiHeadShape shape = kGrouped;
    shape.bias = bias;
    const auto params = some_params<double>(shape);
    Mask mask(batch, 4, n, m);
    mask.set_key_lengths({9, 4});
    const AttentionSettings settings{.scale = .6};
    const auto layer = multi_head(query, key, value, params, mask, settings, {"weights"});

    bool q = true, k = true, v = true, concat = true, output = true;
    const auto near = [](double a, double b) { return std::abs(a - b) < 1e-13; };
    for (Index b = 0; b < batch; ++b) {
      for (Index h = 0; h < 4; ++h) {
        for (Index i = 0; i < n; ++i) {
          for (Index x = 0; x < 3; ++x) {
            q = q && near(layer.q.matrix(b * 4 + h)(i, x),
                          projected(query, b * n + i, params.w_q, params.b_q, h * 3 + x));
          }
          for (Index x = 0; x < 2; ++x) {
            concat = concat && layer.concat.matrix(b)(i, h * 2 + x) ==
                                   layer.attention.output.matrix(b * 4 + h)(i, x);
          }
        }
      }
      for (Index h = 0; h < 2; ++h) {
        for (Index j = 0; j < m; ++j) {
          for (Index x = 0; x < 3; ++x) {
            k = k && near(layer.k.matrix(b * 2 + h)(j, x),
                          projected(key, b * m + j, params.w_k, params.b_k, h * 3 + x));
          }
          for (Index x = 0; x < 2; ++x) {
            v = v && near(layer.v.matrix(b * 2 + h)(j, x),
                          projected(value, b * m + j, params.w_v, params.b_v, h * 2 + x));
          }
        }
      }
      for (Index i = 0; i < n; ++i) {
        for (Index x = 0; x < 3; ++x) {
          output = output && near(layer.output.matrix(b)(i, x),
                                  projected(layer.concat, b * n + i, params.w_o, params.b_o, x));
        }
      }
    }
    CHECK(q);
    CHECK(k);
    CHECK(v);
    CHECK(concat);
    CHECK(output);
    const auto heads = scaled_dot_product(layer.q, layer.k, layer.v, mask, settings, {"weights"});
    CHECK(same_bits(layer.attention.output, heads.output));
    CHECK(same_bits(*layer.attention.weights, *heads.weights));
    CHECK(layer.q.shape() == Shape{2, 4, 70, 3});
    CHECK(layer.k.shape() == Shape{2, 2, 9, 3});
    CHECK(layer.v.shape() == Shape{2, 2, 9, 2});
    CHECK(layer.concat.shape() == Shape{2, 70, 8});
    CHECK(layer.output.shape() == Shape{2, 70, 3});
  }
}

TEST_CASE("query, key and value of different widths give one output width") {
  const MultiHeadShape shape{.d_query = 4,
                             .d_key = 3,
                             .d_value = 5,
                             .d_output = 4,
                             .heads = 2,
                             .kv_heads = 2,
                             .d_k = 2,
                             .d_v = 2};
  test::Numbers numbers;
  const auto layer = multi_head(numbers.tensor<float>({1, 2, 4}), numbers.tensor<float>({1, 3, 3}),
                                numbers.tensor<float>({1, 3, 5}), some_params<float>(shape),
                                Mask(1, 2, 2, 3), {}, {"weights"});
  CHECK(layer.output.shape() == Shape{1, 2, 4});
  CHECK(layer.attention.weights->shape() == Shape{1, 2, 2, 3});
}

TEST_CASE("a wholly masked head adds 0 and leaves the other heads and the biases") {
  test::Numbers numbers;
  const auto x = numbers.tensor<double>({1, 5, 8});
  const MultiHeadShape shape{.d_query = 8,
                             .d_key = 8,
                             .d_value = 8,
                             .d_output = 8,
                             .heads = 2,
                             .kv_heads = 2,
                             .d_k = 4,
                             .d_v = 4,
                             .bias = true};
  auto params = some_params<double>(shape);
  Mask mask(1, 2, 5, 5);
  mask.set_boolean(Tensor<bool>({2, 1, 1}, {true, false}));
  const auto masked = multi_head(x, x, x, params, mask, {}, {"weights"});
  CHECK(masked.attention.empty_rows == 5);
  const auto open = multi_head(x, x, x, params, Mask(1, 2, 5, 5), {}, {"weights"});
  CHECK(masked.attention.output.matrix(0) == open.attention.output.matrix(0));
  CHECK((masked.attention.output.matrix(1).array() == 0).all());
  // As if the head's rows of W_o were not there.
  params.w_o.matrix().bottomRows(4).setZero();
  CHECK(close(multi_head(x, x, x, params, Mask(1, 2, 5, 5), {}).output, doubles(masked.output),
              1e-14));

  Mask nothing(1, 2, 5, 5);
  nothing.set_key_lengths({0});
  const auto bias_only = multi_head(x, x, x, params, nothing, {});
  for (Index i = 0; i < 5; ++i) {
    for (Index c = 0; c < 8; ++c) CHECK(bias_only.output.matrix()(i, c) == (*params.b_o)[c]);
  }
}

TEST_CASE("a padded row of NaN does not reach the rows that do not see it") {
  test::Numbers numbers;
  auto x = numbers.tensor<double>({1, 5, 7});
  MultiHeadShape shape = kGrouped;
  shape.d_key = shape.d_value = 7;
  const auto params = some_params<double>(shape);
  Mask mask(1, 4, 5, 5);
  mask.set_key_lengths({4});
  const auto clean = multi_head(x, x, x, params, mask, {});
  x.matrix().row(4).setConstant(test::kNan);
  const auto poisoned = multi_head(x, x, x, params, mask, {});
  CHECK(clean.output.matrix().topRows(4) == poisoned.output.matrix().topRows(4));
  CHECK(std::isnan(poisoned.output.matrix()(4, 0)));
}

TEST_CASE("neither threads nor matrices asked for change a bit of a layer") {
  test::Numbers numbers;
  const auto x = numbers.tensor<float>({2, 150, 64});
  const MultiHeadShape shape{.d_query = 64,
                             .d_key = 64,
                             .d_value = 64,
                             .d_output = 64,
                             .heads = 4,
                             .kv_heads = 4,
                             .d_k = 16,
                             .d_v = 16,
                             .bias = true};
  const auto params = some_params<float>(shape);
  const Mask mask(2, 4, 150, 150);
  const auto one = multi_head(x, x, x, params, mask, {.threads = 1}, test::kAllMatrices);
  for (const Index threads : {2, 3, 8}) {
    const auto many = multi_head(x, x, x, params, mask, {.threads = threads});
    CHECK(same_bits(one.output, many.output));
    CHECK(same_bits(one.q, many.q));
  }
}

TEST_CASE("an empty batch or no rows give empty outputs") {
  const auto params = some_params<float>(kGrouped);
  const auto layer = multi_head(Tensor<float>({0, 2, 7}), Tensor<float>({0, 3, 5}),
                                Tensor<float>({0, 3, 6}), params, Mask(0, 4, 2, 3), {});
  CHECK(layer.output.shape() == Shape{0, 2, 3});
  const auto no_keys = multi_head(Tensor<float>({1, 2, 7}), Tensor<float>({1, 0, 5}),
                                  Tensor<float>({1, 0, 6}), params, Mask(1, 4, 2, 0), {});
  CHECK(no_keys.attention.empty_rows == 8);
  CHECK(no_keys.output[1] == (*params.b_o)[1]);
}

TEST_CASE("heads are split from columns in order and merged back") {
  const Tensor<double> packed({1, 2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto split = split_heads(packed, 3);
  CHECK(split.shape() == Shape{1, 3, 2, 2});
  CHECK(doubles(split) == std::vector<double>{1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12});
  CHECK(same_bits(merge_heads(split), packed));
  CHECK(says(error_of([&] { split_heads(packed, 4); }), {"heads: got 4", "width 6"}));
  CHECK(says(error_of([&] { split_heads(packed, 0); }), {"heads: got 0"}));
  CHECK(says(error_of([&] { split_heads(split, 1); }), {"3 axes"}));
  CHECK(says(error_of([&] { merge_heads(packed); }), {"4 axes"}));
}

TEST_CASE("parameters tell their sizes") {
  const MultiHeadShape shape = some_params<float>(kGrouped).shape();
  CHECK(shape.d_query == 7);
  CHECK(shape.d_key == 5);
  CHECK(shape.d_value == 6);
  CHECK(shape.d_output == 3);
  CHECK(shape.heads == 4);
  CHECK(shape.kv_heads == 2);
  CHECK(shape.d_k == 3);
  CHECK(shape.d_v == 2);
  CHECK(shape.bias);
  MultiHeadShape plain = kGrouped;
  plain.bias = false;
  CHECK_FALSE(some_params<float>(plain).shape().bias);
}

TEST_CASE("parameters that do not agree are refused with the tensor and both numbers") {
  const auto error = [](auto&& spoil) {
    auto params = some_params<float>(kGrouped);
    spoil(params);
    return error_of([&] { params.shape(); });
  };
  using Params = MultiHeadParams<float>;
  const auto with = [](Tensor<float> Params::*member, const Shape& shape) {
    return [=](Params& p) { p.*member = Tensor<float>(shape); };
  };
  CHECK(error([](Params&) {}).empty());
  CHECK(says(error([](Params& p) { p.heads = 3; }), {"heads: got 3", "2 kv_heads"}));
  CHECK(says(error([](Params& p) { p.heads = 0; }), {"heads: got 0"}));
  CHECK(says(error([](Params& p) { p.kv_heads = 0; }), {"kv_heads: got 0"}));
  CHECK(says(error([](Params& p) {
               p.heads = p.kv_heads = 3;
               p.w_q = Tensor<float>({10, 10});
             }),
             {"w_q: got 10 columns", "3 heads"}));
  CHECK(says(error(with(&Params::w_q, {7, 0})), {"w_q: got 0 columns"}));
  CHECK(says(error(with(&Params::w_q, {7})), {"w_q: got [7]", "2 axes"}));
  CHECK(says(error(with(&Params::w_k, {5, 7})), {"w_k: got 7 columns", "2 kv_heads"}));
  CHECK(says(error(with(&Params::w_k, {5, 8})), {"w_k: got 2 kv_heads of width 4", "width 3"}));
  CHECK(says(error(with(&Params::w_v, {6, 5})), {"w_v: got 5 columns", "2 kv_heads"}));
  CHECK(says(error(with(&Params::w_o, {7, 3})), {"w_o: got 7 rows", "need 8"}));
  CHECK(says(error([](Params& p) { p.b_q = Tensor<float>({11}); }), {"b_q: got [11]", "[12]"}));
  CHECK(says(error([](Params& p) { p.b_k = Tensor<float>({5}); }), {"b_k: got [5]", "[6]"}));
  CHECK(says(error([](Params& p) { p.b_v = Tensor<float>({1, 4}); }), {"b_v: got [1, 4]", "[4]"}));
  CHECK(says(error([](Params& p) { p.b_o = Tensor<float>({4}); }), {"b_o: got [4]", "[3]"}));
}

TEST_CASE("inputs that do not fit the parameters or each other are refused") {
  const auto params = some_params<float>(kGrouped);
  const auto error = [&](const Shape& q, const Shape& k, const Shape& v) {
    return error_of([&] {
      multi_head(Tensor<float>(q), Tensor<float>(k), Tensor<float>(v), params, Mask(1, 4, 2, 3),
                 {});
    });
  };
  CHECK(error({1, 2, 7}, {1, 3, 5}, {1, 3, 6}).empty());
  CHECK(says(error({1, 2, 8}, {1, 3, 5}, {1, 3, 6}), {"query: got 8 columns", "7", "w_q"}));
  CHECK(says(error({1, 2, 7}, {1, 3, 6}, {1, 3, 6}), {"key: got 6 columns", "5", "w_k"}));
  CHECK(says(error({1, 2, 7}, {1, 3, 5}, {1, 3, 7}), {"value: got 7 columns", "6", "w_v"}));
  CHECK(says(error({4, 2, 7}, {1, 3, 5}, {1, 3, 6}), {"key: got batch = 1", "4 as in query"}));
  CHECK(says(error({1, 2, 7}, {1, 3, 5}, {2, 3, 6}), {"value: got batch = 2", "1 as in query"}));
  CHECK(says(error({1, 2, 7}, {1, 3, 5}, {1, 4, 6}), {"value: got m = 4", "3 as in key"}));
  CHECK(says(error({2, 7}, {1, 3, 5}, {1, 3, 6}), {"query: got [2, 7]", "3 axes"}));
  CHECK(says(error({1, 3, 7}, {1, 3, 5}, {1, 3, 6}), {"mask: got [1, 4, 2, 3]", "[1, 4, 3, 3]"}));
}

}  // namespace
}  // namespace attnlab
