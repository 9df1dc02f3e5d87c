// What holds for every backward pass: saturated rows keep their digits, what lies under the mask
// never matters, and neither threads nor what is asked for change a bit.

#include "attention/attention_test.h"
#include "attnlab/attention/scaled_dot_product_backward.h"

namespace attnlab {
namespace {

using test::kInfinity;
using test::kNan;
using test::no_mask;
using test::same_bits;

// The gradient of each key of a row with these logits, under values that are their own gradient
// weights: d_k = d_v = 1, q = 1, grad_output = 1.
template <class T>
AttentionGradients<T> of_logits(std::initializer_list<T> logits, std::initializer_list<T> values,
                                const AttentionSettings& settings = {}) {
  const auto m = static_cast<Index>(logits.size());
  const Tensor<T> one({1, 1, 1, 1}, {1}), k({1, 1, m, 1}, logits), v({1, 1, m, 1}, values);
  return scaled_dot_product_backward(one, k, v, one, no_mask(one, k), settings);
}

// With the largest logit the last and g = v - v_last, J g = p o (g - p.g), where p_last is 1.
template <class T>
void check_saturated(T gap, double tolerance) {
  const auto gradients = of_logits<T>({gap, 2 * gap, 3 * gap}, {T(.5), T(-1.25), T(3)});
  const double first = std::exp(-2.0 * gap), second = std::exp(-1.0 * gap);
  const double mean = first * -2.5 + second * -4.25;
  const std::vector<double> expected = {first * (-2.5 - mean), second * (-4.25 - mean), -mean};
  for (Index j = 0; j < 3; ++j) {
    CHECK((*gradients.grad_k)[j] ==
          Approx(expected[static_cast<std::size_t>(j)]).epsilon(tolerance).margin(0));
  }
  CHECK((*gradients.grad_q)[0] ==
        Approx(gap * (-2 * expected[0] - expected[1])).epsilon(tolerance).margin(0));
}

TEST_CASE("a saturated row keeps the digits of its gradients") {
  // The plain form, p o (g - p.g) with g = v, gives 0 or noise for all three.
  check_saturated<float>(20, 2e-6);
  check_saturated<double>(100, 1e-13);
}

TEST_CASE("a saturated softcap keeps the digits of its slope") {
  // tanh(20) rounds to 1 in float64; both keys weigh 1/2, and J g = +-(v_0 - v_1) / 4.
  const auto gradients = of_logits<double>({20, 21}, {2, 1}, {.softcap = 1});
  CHECK((*gradients.grad_k)[0] ==
        Approx(.25 / std::pow(std::cosh(20.0), 2)).epsilon(1e-12).margin(0));
  CHECK((*gradients.grad_k)[1] ==
        Approx(-.25 / std::pow(std::cosh(21.0), 2)).epsilon(1e-12).margin(0));
}

struct Inputs {
  Tensor<double> q, k, v, grad_output;
};

Inputs draw(Index n, Index m) {
  test::Numbers numbers(9);
  auto q = numbers.tensor<double>({2, 4, n, 6}), k = numbers.tensor<double>({2, 2, m, 6});
  auto v = numbers.tensor<double>({2, 2, m, 3}), g = numbers.tensor<double>({2, 4, n, 3});
  return {std::move(q), std::move(k), std::move(v), std::move(g)};
}

AttentionGradients<double> differentiate(const Inputs& in, const Mask& mask) {
  return scaled_dot_product_backward(in.q, in.k, in.v, in.grad_output, mask,
                                     {.softcap = 3, .dropout = .1});
}

// Row `row` of every matrix set to `value`.
void poison(Tensor<double>& tensor, Index row, double value) {
  for (Index i = 0; i < tensor.shape().matrices(); ++i)
    tensor.matrix(i).row(row).setConstant(value);
}

bool row_is_nan(const Tensor<double>& tensor, Index row) {
  for (Index i = 0; i < tensor.shape().matrices(); ++i) {
    if (!tensor.matrix(i).row(row).array().isNaN().all()) return false;
  }
  return true;
}

bool same_rows(const Tensor<double>& a, const Tensor<double>& b, Index first, Index last) {
  for (Index i = 0; i < a.shape().matrices(); ++i) {
    for (Index row = first; row < last; ++row) {
      const auto x = a.matrix(i), y = b.matrix(i);
      const auto bytes = static_cast<std::size_t>(x.cols()) * sizeof(double);
      if (std::memcmp(x.row(row).data(), y.row(row).data(), bytes) != 0) return false;
    }
  }
  return true;
}

enum class Hide { boolean, additive, lengths, window };

// Keys 7 and on hidden from every query, and query 3 left without keys, by boolean and additive
// masks.
Mask hiding(Hide how, Index n, Index m) {
  Mask mask(2, 4, n, m);
  switch (how) {
    case Hide::boolean: {
      Tensor<bool> may_attend({n, m}, true);
      may_attend.matrix().rightCols(m - 7).setConstant(false);
      may_attend.matrix().row(3).setConstant(false);
      mask.set_boolean(std::move(may_attend));
      break;
    }
    case Hide::additive: {
      Tensor<double> bias({n, m}, .5);
      bias.matrix().rightCols(m - 7).setConstant(-kInfinity);
      bias.matrix().row(3).setConstant(-kInfinity);
      mask.set_additive(std::move(bias));
      break;
    }
    case Hide::lengths:
      mask.set_key_lengths({7, 5});
      break;
    case Hide::window:
      mask.set_offset(7 - n);
      mask.set_window(-1, 0);
      break;
  }
  return mask;
}

TEST_CASE("what the mask hides does not touch a gradient, and has gradient 0") {
  const Index n = 70, m = 12;
  const Inputs clean = draw(n, m);
  for (const Hide how : {Hide::boolean, Hide::additive, Hide::lengths, Hide::window}) {
    const Mask mask = hiding(how, n, m);
    const auto expected = differentiate(clean, mask);
    for (const double garbage : {kNan, kInfinity, -kInfinity, 1e300}) {
      Inputs in = clean;
      for (Index j = 7; j < m; ++j) poison(in.k, j, garbage), poison(in.v, j, -garbage);
      if (how != Hide::lengths) poison(in.q, 3, garbage), poison(in.grad_output, 3, garbage);
      const auto gradients = differentiate(in, mask);
      CHECK(same_bits(*gradients.grad_q, *expected.grad_q));
      CHECK(same_bits(*gradients.grad_k, *expected.grad_k));
      CHECK(same_bits(*gradients.grad_v, *expected.grad_v));
    }
    for (Index i = 0; i < 4; ++i) {
      CHECK((expected.grad_k->matrix(i).bottomRows(m - 7).array() == 0).all());
      CHECK((expected.grad_v->matrix(i).bottomRows(m - 7).array() == 0).all());
    }
    if (how == Hide::lengths) continue;
    for (Index i = 0; i < 8; ++i) CHECK((expected.grad_q->matrix(i).row(3).array() == 0).all());
  }
}

TEST_CASE("what is not finite reaches those that see it, and nobody else") {
  const Index n = 70, at = 66;
  const Inputs clean = draw(n, n);
  Mask mask(2, 4, n, n);
  mask.set_causal();
  Tensor<bool> itself({n, n}, true);  // queries after `at` do not see it
  for (Index i = at + 1; i < n; ++i) itself.matrix()(i, at) = false;
  mask.set_boolean(std::move(itself));
  const auto expected = differentiate(clean, mask);

  Inputs in = clean;
  poison(in.grad_output, at, kNan);
  auto got = differentiate(in, mask);
  CHECK(same_rows(*got.grad_q, *expected.grad_q, 0, at));
  CHECK(row_is_nan(*got.grad_q, at));
  CHECK(same_rows(*got.grad_q, *expected.grad_q, at + 1, n));
  for (const auto& [gradient, other] :
       {std::pair(&got.grad_k, &expected.grad_k), std::pair(&got.grad_v, &expected.grad_v)}) {
    for (const Index j : {Index{0}, at}) CHECK(row_is_nan(**gradient, j));
    CHECK(same_rows(**gradient, **other, at + 1, n));
  }

  in = clean;
  poison(in.q, at, kNan);
  got = differentiate(in, mask);
  CHECK(row_is_nan(*got.grad_q, at));
  CHECK(row_is_nan(*got.grad_k, 0));
  CHECK(row_is_nan(*got.grad_v, 0));
  CHECK(same_rows(*got.grad_q, *expected.grad_q, at + 1, n));
  CHECK(same_rows(*got.grad_k, *expected.grad_k, at + 1, n));
  CHECK(same_rows(*got.grad_v, *expected.grad_v, at + 1, n));

  in = clean;
  poison(in.k, at, kNan);
  got = differentiate(in, mask);
  CHECK(same_rows(*got.grad_q, *expected.grad_q, 0, at));
  CHECK(row_is_nan(*got.grad_q, at));
  CHECK(same_rows(*got.grad_q, *expected.grad_q, at + 1, n));
  CHECK(same_rows(*got.grad_k, *expected.grad_k, at + 1, n));

  in = clean;
  poison(in.v, at, kInfinity);
  got = differentiate(in, mask);
  CHECK(same_rows(*got.grad_q, *expected.grad_q, 0, at));
  CHECK(row_is_nan(*got.grad_q, at));
  CHECK(same_rows(*got.grad_q, *expected.grad_q, at + 1, n));
  CHECK(same_bits(*got.grad_v, *expected.grad_v));
}

template <class T>
void check_bits() {
  test::Numbers numbers(4);
  const auto q = numbers.tensor<T>({2, 4, 150, 20}), k = numbers.tensor<T>({2, 2, 170, 20});
  const auto v = numbers.tensor<T>({2, 2, 170, 9}), g = numbers.tensor<T>({2, 4, 150, 9});
  Mask mask = no_mask(q, k);
  mask.set_causal();
  mask.set_offset(20);
  mask.set_additive(numbers.tensor<float>({4, 1, 170}));
  AttentionSettings settings{.scale = .3, .softcap = 2, .dropout = .2, .threads = 1};
  const auto one = scaled_dot_product_backward(q, k, v, g, mask, settings);
  for (const Index threads : {0, 2, 3, 8}) {
    settings.threads = threads;
    const auto many = scaled_dot_product_backward(q, k, v, g, mask, settings);
    CHECK(same_bits(*one.grad_q, *many.grad_q));
    CHECK(same_bits(*one.grad_k, *many.grad_k));
    CHECK(same_bits(*one.grad_v, *many.grad_v));
  }
  const auto only_q = scaled_dot_product_backward(q, k, v, g, mask, settings, {"grad_q"});
  const auto only_k = scaled_dot_product_backward(q, k, v, g, mask, settings, {"grad_k"});
  const auto only_v = scaled_dot_product_backward(q, k, v, g, mask, settings, {"grad_v"});
  CHECK(same_bits(*one.grad_q, *only_q.grad_q));
  CHECK(same_bits(*one.grad_k, *only_k.grad_k));
  CHECK(same_bits(*one.grad_v, *only_v.grad_v));
  CHECK_FALSE(only_q.grad_k);
  CHECK_FALSE(only_q.grad_v);
  CHECK_FALSE(only_v.grad_q);
}

TEST_CASE("neither threads nor what is asked for change a bit of a gradient") {
  check_bits<float>();
  check_bits<double>();
}

TEST_CASE("float32 gradients are close to float64 ones") {
  test::Numbers numbers(6);
  const auto q = numbers.tensor<float>({1, 4, 130, 16}), k = numbers.tensor<float>({1, 2, 90, 16});
  const auto v = numbers.tensor<float>({1, 2, 90, 8}), g = numbers.tensor<float>({1, 4, 130, 8});
  const auto wide = [](const Tensor<float>& t) { return AnyTensor(t).cast<double>(); };
  const Mask mask = no_mask(q, k);
  const auto narrow = scaled_dot_product_backward(q, k, v, g, mask, {.scale = .25});
  const auto exact =
      scaled_dot_product_backward(wide(q), wide(k), wide(v), wide(g), mask, {.scale = .25});
  CHECK(test::close(*narrow.grad_q, test::doubles(*exact.grad_q), 1e-7));
  CHECK(test::close(*narrow.grad_k, test::doubles(*exact.grad_k), 1e-6));
  CHECK(test::close(*narrow.grad_v, test::doubles(*exact.grad_v), 1e-5));
}

TEST_CASE("gradients of axes of length 0") {
  const auto shapes = [](Index batch, Index n, Index m, Index d_v) {
    const Tensor<double> q({batch, 2, n, 3}, 1), k({batch, 2, m, 3}, 1), v({batch, 2, m, d_v}, 1);
    const Tensor<double> g({batch, 2, n, d_v}, 1);
    const auto gradients = scaled_dot_product_backward(q, k, v, g, no_mask(q, k), {});
    for (const auto* gradient : {&gradients.grad_q, &gradients.grad_k}) {
      for (const double value : (*gradient)->values()) CHECK(value == 0);
    }
    return gradients.grad_q->shape().str() + gradients.grad_k->shape().str() +
           gradients.grad_v->shape().str();
  };
  CHECK(shapes(1, 0, 4, 5) == "[1, 2, 0, 3][1, 2, 4, 3][1, 2, 4, 5]");
  CHECK(shapes(1, 3, 0, 5) == "[1, 2, 3, 3][1, 2, 0, 3][1, 2, 0, 5]");
  CHECK(shapes(1, 3, 4, 0) == "[1, 2, 3, 3][1, 2, 4, 3][1, 2, 4, 0]");
  CHECK(shapes(0, 3, 4, 5) == "[0, 2, 3, 3][0, 2, 4, 3][0, 2, 4, 5]");
}

TEST_CASE("a gradient that is not of the output is refused, and so is what forward refuses") {
  const Tensor<double> q({1, 4, 3, 2}), k({1, 2, 5, 2}), v({1, 2, 5, 6});
  const auto refusal = [&](const Shape& grad_output, const AttentionSettings& settings = {}) {
    return test::error_of([&] {
      scaled_dot_product_backward(q, k, v, Tensor<double>(grad_output), no_mask(q, k), settings);
    });
  };
  CHECK(refusal({1, 4, 3, 6}).empty());
  for (const Shape& wrong : {Shape{1, 2, 3, 6}, {1, 4, 5, 6}, {1, 4, 3, 2}, {4, 3, 6}}) {
    CHECK(test::says(refusal(wrong), {"grad_output", wrong.str(), "[1, 4, 3, 6]"}));
  }
  CHECK(test::says(refusal({1, 4, 3, 6}, {.dropout = 1}), {"dropout"}));
}

}  // namespace
}  // namespace attnlab
