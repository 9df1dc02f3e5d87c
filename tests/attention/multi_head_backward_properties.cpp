// What holds for every backward pass of a layer: a key bias has no gradient, inputs given twice add
// up, what lies under the mask never matters, and neither threads nor what is asked for change a
// bit.

#include <array>

#include "attention/drawn_layer.h"
#include "attnlab/attention/multi_head_backward.h"

namespace attnlab {
namespace {

using test::Case;
using test::differentiate;
using test::draw_layer;
using test::DrawnLayer;
using test::forward;
using test::Named;
using test::shape_of;
using test::tensors_of;
using test::with_options;

template <class T>
double largest(const Tensor<T>& t) {
  double most = 0;
  for (const T value : t.values()) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

TEST_CASE("a key bias has gradient 0, unless there is a softcap") {
  for (int options = 0; options < 128; ++options) {
    const Case sizes{.batch = 2, .heads = 4, .kv_heads = 2, .n = 6, .m = 9, .d_k = 3, .d_v = 2};
    const Case c = with_options(sizes, options);
    INFO(test::name_of(c));
    const auto gradients = differentiate(draw_layer<double>(c, true));
    if (c.softcap) {
      CHECK(largest(*gradients.grad_b_k) > 1e-3);
    } else {
      CHECK(largest(*gradients.grad_b_k) < 1e-13);
      CHECK(largest(*gradients.grad_w_k) > 1e-3);
    }
    const auto narrow = differentiate(draw_layer<float>(c, true));
    if (!c.softcap) CHECK(largest(*narrow.grad_b_k) < 1e-5);
  }
}

TEST_CASE("the gradient of an input given twice is the sum of both") {
  const Case c{
      .batch = 2, .heads = 2, .kv_heads = 2, .n = 4, .m = 4, .d_k = 3, .d_v = 2, .causal = true};
  auto layer = draw_layer<double>(c, true);
  MultiHeadShape shape = shape_of(c, true);
  shape.d_key = shape.d_value = 7;
  layer.params = test::some_params<double>(shape);
  layer.key = layer.value = layer.query;
  const auto gradients = differentiate(layer);
  const double h = 1e-5;
  for (Index i = 0; i < layer.query.size(); ++i) {
    const auto output = [&](double step) {
      DrawnLayer<double> moved = layer;
      moved.query[i] += step;
      moved.key = moved.value = moved.query;
      return forward(moved).output;
    };
    const auto above = output(h), below = output(-h);
    double difference = 0;
    for (Index o = 0; o < above.size(); ++o) {
      difference += layer.grad_output[o] * (above[o] - below[o]) / (2 * h);
    }
    const double sum =
        (*gradients.grad_query)[i] + (*gradients.grad_key)[i] + (*gradients.grad_value)[i];
    CHECK(sum == Approx(difference).margin(1e-8));
  }
}

template <class T>
void check_bits(Kernel kernel) {
  const Case c{.batch = 2,
               .heads = 4,
               .kv_heads = 2,
               .n = 300,
               .m = 270,
               .d_k = 20,
               .d_v = 40,
               .causal = true,
               .softcap = true,
               .dropout = true};
  DrawnLayer<T> layer = draw_layer<T>(c, true);
  layer.attention.settings.kernel = kernel;
  layer.attention.settings.threads = 1;
  MultiHeadGradients<T> one = differentiate(layer);
  const auto expected = tensors_of(layer, one);
  for (const Index threads : {0, 2, 3, 8}) {
    layer.attention.settings.threads = threads;
    MultiHeadGradients<T> many = differentiate(layer);
    const auto got = tensors_of(layer, many);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(got[i].name);
      CHECK(test::same_bits(**got[i].gradient, **expected[i].gradient));
    }
  }
  for (std::size_t wanted = 0; wanted < expected.size(); ++wanted) {
    const std::string name = std::string("grad_") + expected[wanted].name;
    INFO(name);
    MultiHeadGradients<T> alone = differentiate(layer, {name});
    const auto got = tensors_of(layer, alone);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].gradient->has_value() == (i == wanted));
    }
    CHECK(test::same_bits(**got[wanted].gradient, **expected[wanted].gradient));
  }
}

TEST_CASE("neither threads nor what is asked for change a bit of a layer's gradient") {
  check_bits<float>(Kernel::automatic);
  check_bits<double>(Kernel::full);
}

bool same_gradients(DrawnLayer<double>& layer, MultiHeadGradients<double>& a,
                    MultiHeadGradients<double>& b) {
  const auto first = tensors_of(layer, a), second = tensors_of(layer, b);
  for (std::size_t i = 0; i < first.size(); ++i) {
    UNSCOPED_INFO(first[i].name);
    if (!test::same_bits(**first[i].gradient, **second[i].gradient)) return false;
  }
  return true;
}

TEST_CASE("what the mask hides of an input does not touch a layer's gradients") {
  const Case c{.batch = 2, .heads = 4, .kv_heads = 2, .n = 5, .m = 6, .d_k = 3, .d_v = 2};
  for (const double garbage : {test::kNan, test::kInfinity}) {
    auto layer = draw_layer<double>(c, true);
    layer.attention.mask.set_key_lengths({4, 6});
    auto clean = differentiate(layer);
    auto poisoned = layer;
    poisoned.key.matrix(0).bottomRows(2).setConstant(garbage);
    poisoned.value.matrix(0).bottomRows(2).setConstant(-garbage);
    auto got = differentiate(poisoned);
    CHECK(same_gradients(layer, clean, got));
    CHECK((got.grad_key->matrix(0).bottomRows(2).array() == 0).all());

    // A query that sees nothing.
    Tensor<bool> may_attend({5, 1}, true);
    may_attend[3] = false;
    layer.attention.mask.set_boolean(may_attend);
    poisoned.attention.mask.set_boolean(may_attend);
    clean = differentiate(layer);
    poisoned.query.matrix(1).row(3).setConstant(garbage);
    got = differentiate(poisoned);
    CHECK(same_gradients(layer, clean, got));
  }
}

TEST_CASE("what is not finite reaches the weights of the heads that see it, and no others") {
  const Case c{.batch = 1, .heads = 4, .kv_heads = 2, .n = 3, .m = 5, .d_k = 3, .d_v = 2};
  auto layer = draw_layer<double>(c, true);
  // Key 4 is seen by query 1 of head 3 alone, which uses the second key/value head.
  Tensor<bool> may_attend({1, 4, 3, 5}, true);
  for (Index h = 0; h < 4; ++h) {
    for (Index i = 0; i < 3; ++i) may_attend.matrix(h)(i, 4) = h == 3 && i == 1;
  }
  layer.attention.mask.set_boolean(may_attend);
  const auto clean = differentiate(layer);
  layer.key.matrix()(4, 2) = test::kNan;
  const auto got = differentiate(layer);
  CHECK(got.grad_w_k->matrix().leftCols(3) == clean.grad_w_k->matrix().leftCols(3));
  CHECK(got.grad_w_k->matrix().rightCols(3).array().isNaN().all());
  for (Index x = 0; x < 3; ++x) CHECK((*got.grad_b_k)[x] == (*clean.grad_b_k)[x]);

  // Of a value it spoils neither weights nor the gradients of v, but what is multiplied with it.
  layer = draw_layer<double>(c, true);
  layer.attention.mask.set_boolean(may_attend);
  layer.value.matrix()(4, 5) = test::kInfinity;
  const auto grad_w_v = differentiate(layer).grad_w_v->matrix().eval();
  CHECK(grad_w_v.leftCols(2) == clean.grad_w_v->matrix().leftCols(2));
  CHECK(grad_w_v.topRows(5) == clean.grad_w_v->matrix().topRows(5));
  CHECK((grad_w_v.bottomRightCorner(1, 2).array().abs() == test::kInfinity).all());
}

TEST_CASE("behind a past and own keys the mask hides the same rows of an input") {
  // Keys 0 and 1 are the past's; of the input's three rows the mask hides the first alone.
  const Case c{.batch = 1, .heads = 2, .kv_heads = 2, .n = 3, .m = 5, .d_k = 3, .d_v = 2};
  auto layer = draw_layer<double>(c, true, 2, {.bias = true, .zero = true});
  layer.attention.mask.set_boolean(Tensor<bool>({5}, {true, true, false, true, true}));
  auto clean = differentiate(layer);
  auto poisoned = layer;
  poisoned.key.matrix().row(0).setConstant(test::kNan);
  poisoned.value.matrix().row(0).setConstant(test::kInfinity);
  auto got = differentiate(poisoned);
  CHECK(same_gradients(layer, clean, got));
  for (const Index seen : {1, 2}) {
    poisoned = layer;
    poisoned.key.matrix().row(seen).setConstant(test::kNan);
    CHECK(differentiate(poisoned).grad_w_k->matrix().array().isNaN().all());
  }
}

TEST_CASE("layers over axes of length 0 have gradients of 0") {
  const auto shapes = [](Index batch, Index n, Index m) {
    Case c{.batch = std::max<Index>(batch, 1),
           .heads = 2,
           .kv_heads = 2,
           .n = std::max<Index>(n, 1),
           .m = std::max<Index>(m, 1),
           .d_k = 3,
           .d_v = 2};
    auto layer = draw_layer<float>(c, true);
    layer.query = Tensor<float>({batch, n, 7});
    layer.key = Tensor<float>({batch, m, 5});
    layer.value = Tensor<float>({batch, m, 6});
    layer.grad_output = Tensor<float>({batch, n, 4}, 1);
    layer.attention.mask = Mask(batch, 2, n, m);
    auto gradients = differentiate(layer);
    for (const Named<float>& tensor : tensors_of(layer, gradients)) {
      INFO(tensor.name);
      CHECK((*tensor.gradient)->shape() == tensor.at->shape());
      const bool counts_rows = std::string(tensor.name) == "b_o";
      const double expected = counts_rows ? static_cast<double>(batch * n) : 0;
      for (const float value : (*tensor.gradient)->values()) {
        CHECK(static_cast<double>(value) == expected);
      }
    }
  };
  shapes(0, 2, 3);
  shapes(1, 0, 3);
  shapes(1, 2, 0);
}

TEST_CASE("what does not fit a layer's backward pass is refused") {
  const Case c{.batch = 1, .heads = 2, .kv_heads = 2, .n = 2, .m = 3, .d_k = 3, .d_v = 2};
  const auto layer = draw_layer<float>(c, false);
  const auto refusal = [&](auto&& spoil) {
    auto spoilt = layer;
    auto result = forward(spoilt);
    spoil(spoilt, result);
    return test::error_of([&] {
      multi_head_backward(spoilt.query, spoilt.key, spoilt.value, spoilt.params, result,
                          spoilt.grad_output, spoilt.attention.mask, spoilt.attention.settings);
    });
  };
  using Layer = DrawnLayer<float>;
  using Result = MultiHeadResult<float>;
  CHECK(refusal([](Layer&, Result&) {}).empty());
  CHECK(test::says(refusal([](Layer& l, Result&) {
                     l.grad_output = Tensor<float>({1, 2, 5});
                   }),
                   {"grad_output: got [1, 2, 5]", "[1, 2, 4]"}));
  CHECK(test::says(refusal([](Layer& l, Result&) {
                     l.query = Tensor<float>({1, 2, 8});
                   }),
                   {"query: got 8 columns", "w_q"}));
  CHECK(test::says(refusal([](Layer& l, Result&) { l.attention.settings.dropout = 1; }),
                   {"dropout"}));
  const std::array<Tensor<float> Result::*, 4> parts = {&Result::q, &Result::k, &Result::v,
                                                        &Result::concat};
  for (const auto part : parts) {
    CHECK(test::says(refusal([&](Layer&, Result& r) {
                       r.*part = Tensor<float>({1, 9, 9, 9});
                     }),
                     {"forward: got [1, 9, 9, 9]", "need that of"}));
  }
}

}  // namespace
}  // namespace attnlab
