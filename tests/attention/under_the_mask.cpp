// What lies under the mask never matters, and what lies outside it always does.

#include "attention/attention_test.h"

namespace attnlab {
namespace {

using test::close;
using test::doubles;
using test::kInfinity;
using test::kNan;
using test::no_mask;
using test::same_bits;

TEST_CASE("NaN in a masked key and its value is as if it were not there") {
  const Tensor<double> q({1, 1, 1, 2}, {1, 0});
  const auto attend = [&](double k, double v) {
    const Tensor<double> keys({1, 1, 2, 2}, {1, 0, k, 0}), values({1, 1, 2, 1}, {1, v});
    Mask mask = no_mask(q, keys);
    mask.set_boolean(Tensor<bool>({2}, {true, false}));
    return scaled_dot_product(q, keys, values, mask, {}, {"weights", "masked_scores"});
  };
  const auto clean = attend(3, 3);
  CHECK(doubles(clean.output) == std::vector<double>{1});
  CHECK(doubles(*clean.weights) == std::vector<double>{1, 0});
  for (const double poison : {kNan, kInfinity, -kInfinity, 1e10, 1e308}) {
    const auto poisoned = attend(poison, poison);
    CHECK(same_bits(poisoned.output, clean.output));
    CHECK(same_bits(*poisoned.weights, *clean.weights));
    CHECK(same_bits(*poisoned.masked_scores, *clean.masked_scores));
  }
}

// Every way to hide keys 5 and 11 of 20 from all queries, or from some.
enum class Hide { boolean, additive, lengths, window, causal };

Mask hiding(Hide how, Index n, Index m) {
  Mask mask(2, 4, n, m);
  switch (how) {
    case Hide::boolean: {
      Tensor<bool> may_attend({m}, true);
      may_attend[5] = may_attend[11] = false;
      mask.set_boolean(std::move(may_attend));
      break;
    }
    case Hide::additive: {
      Tensor<float> bias({n, m}, 0.5f);
      for (Index i = 0; i < n; ++i) {
        bias[i * m + 5] = bias[i * m + 11] = -std::numeric_limits<float>::infinity();
      }
      mask.set_additive(std::move(bias));
      break;
    }
    case Hide::lengths:
      mask.set_key_lengths({5, 3});
      break;
    case Hide::window:
      mask.set_offset(6);
      mask.set_window(0, 0);
      break;
    case Hide::causal:
      mask.set_causal();
      mask.set_window(1, -1);
      break;
  }
  return mask;
}

template <class T>
void check_poison(Hide how, Index n, Index m, T poison) {
  test::Numbers numbers(7);
  const auto q = numbers.tensor<T>({2, 4, n, 6});
  auto k = numbers.tensor<T>({2, 2, m, 6}), v = numbers.tensor<T>({2, 2, m, 9});
  const Mask mask = hiding(how, n, m);
  const AttentionSettings settings{.softcap = 5};
  const Request want = {"weights", "masked_scores"};
  const auto clean = scaled_dot_product(q, k, v, mask, settings, want);
  for (Index x = 0; x < k.shape().matrices(); ++x) {
    for (const Index j : {Index{5}, Index{11}}) {
      k.matrix(x).row(j).setConstant(poison);
      v.matrix(x)(j, 1) = poison;
      v.matrix(x)(j, 8) = -poison;
    }
  }
  const auto poisoned = scaled_dot_product(q, k, v, mask, settings, want);
  CHECK(poisoned.empty_rows == clean.empty_rows);
  Index untouched = 0;
  for (Index b = 0; b < 2; ++b) {
    for (Index h = 0; h < 4; ++h) {
      for (Index i = 0; i < n; ++i) {
        const auto row = [&](const Tensor<T>& t) {
          const Index width = t.shape()[3];
          return t.values().subspan(static_cast<std::size_t>(((b * 4 + h) * n + i) * width),
                                    static_cast<std::size_t>(width));
        };
        if (mask.may_attend(b, h, i, 5) || mask.may_attend(b, h, i, 11)) {
          if (std::isnan(poison)) {
            CHECK(std::isnan(row(poisoned.output)[0]));
          }
          continue;
        }
        ++untouched;
        CHECK(test::same_bits<T>(row(poisoned.output), row(clean.output)));
        CHECK(test::same_bits<T>(row(*poisoned.weights), row(*clean.weights)));
        CHECK(test::same_bits<T>(row(*poisoned.masked_scores), row(*clean.masked_scores)));
      }
    }
  }
  CHECK(untouched > 0);
}

TEST_CASE("whatever is poisoned, rows that do not see it keep their bits") {
  for (const Hide how :
       {Hide::boolean, Hide::additive, Hide::lengths, Hide::window, Hide::causal}) {
    for (const Index n : {1, 4, 20}) {
      for (const double poison : {kNan, kInfinity, 1e10, 1e300}) {
        check_poison<double>(how, n, 20, poison);
      }
      check_poison<float>(how, n, 20, std::numeric_limits<float>::quiet_NaN());
      check_poison<float>(how, n, 20, 1e38f);
    }
  }
}

TEST_CASE("the sign of a masked value does not show in a zero") {
  const Tensor<double> q({1, 1, 1, 1}, 1.0), k({1, 1, 2, 1}, 1.0);
  Mask mask = no_mask(q, k);
  mask.set_boolean(Tensor<bool>({2}, {true, false}));
  const auto plus = scaled_dot_product(q, k, Tensor<double>({1, 1, 2, 1}, {-0.0, 5}), mask, {});
  const auto minus = scaled_dot_product(q, k, Tensor<double>({1, 1, 2, 1}, {-0.0, -5}), mask, {});
  const auto nan = scaled_dot_product(q, k, Tensor<double>({1, 1, 2, 1}, {-0.0, kNan}), mask, {});
  CHECK(same_bits(plus.output, minus.output));
  CHECK(same_bits(plus.output, nan.output));
}

TEST_CASE("NaN and infinities in a value that is seen reach exactly their rows and columns") {
  const Tensor<double> q({1, 1, 3, 1}), k({1, 1, 3, 1});
  Mask mask = no_mask(q, k);
  mask.set_causal();
  const Tensor<double> v({1, 1, 3, 4},
                         {1, 1, 1, 1, 2, kInfinity, -kInfinity, 2, 3, -kInfinity, 3, kNan});
  const auto result = scaled_dot_product(q, k, v, mask, {});
  CHECK(close(result.output,
              {1, 1, 1, 1,                       //
               1.5, kInfinity, -kInfinity, 1.5,  //
               2, kNan, -kInfinity, kNan},
              1e-15));
  // A weight that underflows to 0 times infinity is NaN, as in the matrix product.
  const Tensor<double> far({1, 1, 3, 1}, {0, -1e6, 0});
  const Tensor<double> ones({1, 1, 3, 1}, 1.0);
  const auto underflow = scaled_dot_product(ones, far, v, mask, {});
  CHECK(std::isnan(underflow.output[4 + 1]));
}

TEST_CASE("a value of infinity reaches the rows that see it from the first key to the last") {
  const Index n = 6, m = 9;
  for (Index j = 0; j < m; ++j) {
    Tensor<double> q({1, 1, n, 1}), k({1, 1, m, 1}), v({1, 1, m, 1}, 1.0);
    v[j] = kInfinity;
    Mask mask = no_mask(q, k);
    mask.set_offset(2);
    mask.set_window(1, 1);
    const auto result = scaled_dot_product(q, k, v, mask, {});
    for (Index i = 0; i < n; ++i) {
      const bool seen = j >= i + 1 && j <= i + 3;
      if (seen) {
        CHECK(result.output[i] == kInfinity);
      } else {
        CHECK(result.output[i] == Approx(1));
      }
    }
  }
}

TEST_CASE("NaN or infinity in a score that is seen makes the row NaN, and that row only") {
  for (const double score : {kNan, kInfinity}) {
    const Tensor<double> q({1, 1, 2, 1}, 1.0);
    const Tensor<double> k({1, 1, 3, 1}, {1, 2, score});
    const Tensor<double> v({1, 1, 3, 1}, {1, 2, 3});
    Mask mask = no_mask(q, k);
    mask.set_boolean(Tensor<bool>({2, 3}, {true, false, true, true, true, false}));
    const auto result = scaled_dot_product(q, k, v, mask, {}, {"weights"});
    const double e = std::exp(1.0);
    CHECK(close(*result.weights, {kNan, 0, kNan, 1 / (1 + e), e / (1 + e), 0}, 1e-15));
    CHECK(std::isnan(result.output[0]));
    CHECK(result.output[1] == Approx((1 + 2 * e) / (1 + e)));
    CHECK(result.empty_rows == 0);
  }
}

TEST_CASE("NaN beside minus infinity is NaN, wherever it stands") {
  const Tensor<double> q({1, 1, 1, 1}, 1.0);
  for (const auto& scores : {std::vector{kNan, -kInfinity}, std::vector{-kInfinity, kNan}}) {
    const Tensor<double> k({1, 1, 2, 1}, {scores[0], scores[1]});
    const auto result = scaled_dot_product(q, k, k, no_mask(q, k), {}, {"weights"});
    CHECK(close(*result.weights, {kNan, kNan}, 0));
  }
}

TEST_CASE("scores that are all minus infinity weigh nothing, for 127 and 128 keys alike") {
  const Tensor<float> q({1, 1, 1, 1}, 1.0f);
  for (const Index m : {1, 127, 128}) {
    const Tensor<float> k({1, 1, m, 1}, -std::numeric_limits<float>::infinity());
    const Tensor<float> v({1, 1, m, 1}, 1.0f);
    const auto result = scaled_dot_product(q, k, v, no_mask(q, k), {}, {"weights"});
    for (const float weight : result.weights->values()) CHECK(weight == 0);
    CHECK(result.output[0] == 0);
    CHECK(result.empty_rows == 0);  // it may attend to keys
  }
}

TEST_CASE("an additive mask of minus infinity selects, also where the score is NaN") {
  const Tensor<double> q({1, 1, 1, 1}, 1.0);
  const Tensor<double> k({1, 1, 3, 1}, {kNan, kInfinity, 1}), v({1, 1, 3, 1}, {kNan, 2, 3});
  Mask mask = no_mask(q, k);
  mask.set_additive(Tensor<double>({3}, {-kInfinity, -kInfinity, 0}));
  const auto result = scaled_dot_product(q, k, v, mask, {}, {"masked_scores", "weights"});
  CHECK(doubles(*result.masked_scores) == std::vector<double>{-kInfinity, -kInfinity, 1});
  CHECK(doubles(*result.weights) == std::vector<double>{0, 0, 1});
  CHECK(doubles(result.output) == std::vector<double>{3});

  mask.set_additive(Tensor<double>({3}, -kInfinity));
  CHECK(scaled_dot_product(q, k, v, mask, {}).empty_rows == 1);
}

TEST_CASE("an additive mask of NaN or infinity is arithmetic") {
  const Tensor<double> q({1, 1, 1, 1}), k({1, 1, 2, 1}), v({1, 1, 2, 1}, 1.0);
  for (const double bias : {kNan, kInfinity}) {
    Mask mask = no_mask(q, k);
    mask.set_additive(Tensor<double>({2}, {bias, 0}));
    const auto result = scaled_dot_product(q, k, v, mask, {}, {"weights"});
    CHECK(close(*result.weights, {kNan, kNan}, 0));
  }
}

TEST_CASE("scores asked for are those under the mask too") {
  test::Numbers numbers;
  const auto q = numbers.tensor<double>({1, 1, 70, 3}), k = numbers.tensor<double>({1, 1, 90, 3});
  Mask mask = no_mask(q, k);
  mask.set_offset(5);
  mask.set_window(2, 1);
  const auto result =
      scaled_dot_product(q, k, k, mask, {.scale = 2, .softcap = 3}, test::kAllMatrices);
  for (Index i = 0; i < 70; ++i) {
    for (Index j = 0; j < 90; ++j) {
      const double raw = q.matrix().row(i).dot(k.matrix().row(j));
      CHECK(result.raw_scores->matrix()(i, j) == Approx(raw).margin(1e-14));
      CHECK(result.scores->matrix()(i, j) == Approx(2 * raw).margin(1e-14));
      const double capped = 3 * std::tanh(2 * raw / 3);
      CHECK(result.capped_scores->matrix()(i, j) == Approx(capped).margin(1e-14));
      const bool seen = j >= i + 3 && j <= i + 6;
      CHECK(std::isinf(result.masked_scores->matrix()(i, j)) == !seen);
      CHECK((result.weights->matrix()(i, j) > 0) == seen);
    }
  }
}

}  // namespace
}  // namespace attnlab
