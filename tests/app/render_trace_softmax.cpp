#include <cmath>
#include <limits>

#include "app/render_sample.h"
#include "catch.h"
#include "render/trace.h"

namespace attnlab {
namespace {

using Tensors = std::optional<AnyTensor>;

struct SoftmaxOptions {
  std::vector<double> values = {1, 2, 3};
  static constexpr auto fields() {
    return std::tuple(field("values", &SoftmaxOptions::values, "numbers"));
  }
};

struct SoftmaxResult {
  Tensors scaled = {}, exponentials = {}, sums = {}, softmax = {}, jacobian_diagonal = {},
          jacobian_off_diagonal = {}, jacobian = {}, entropy = {};
  std::vector<test::SampleRow> rows = {};

  static constexpr auto fields() {
    using R = SoftmaxResult;
    return std::tuple(
        field("scaled", &R::scaled, "less the maximum", {.shape = "[.., n]"}),
        field("exponentials", &R::exponentials, "positive", {.formula = "exp(scaled)"}),
        field("sums", &R::sums, "the divisor", {.formula = "sum_j exponentials_j"}),
        field("softmax", &R::softmax, "weights", {.formula = "s_i = exponentials_i / sums"}),
        field("jacobian_diagonal", &R::jacobian_diagonal, "case i = j", {.shape = "[.., n]"}),
        field("jacobian_off_diagonal", &R::jacobian_off_diagonal, "case i != j"),
        field("jacobian", &R::jacobian, "both", {.formula = "s_i (delta_ij - s_j)"}),
        field("entropy", &R::entropy, "spread", {.unit = "nats", .shape = "[..]", .shown = true}),
        field("rows", &R::rows, "one a method"));
  }
};

SoftmaxResult one_two_three() {
  const double s[] = {.09003057317038046, .24472847105479765, .66524095577482189};
  SoftmaxResult result;
  result.scaled = AnyTensor(Tensor<double>({3}, {-2, -1, 0}));
  result.exponentials = AnyTensor(Tensor<double>({3}, {std::exp(-2.), std::exp(-1.), 1}));
  result.sums = AnyTensor(Tensor<double>(Shape{}, std::exp(-2.) + std::exp(-1.) + 1));
  result.softmax = AnyTensor(Tensor<double>({3}, {s[0], s[1], s[2]}));
  Tensor<double> diagonal({3}), off_diagonal({3, 3}), jacobian({3, 3});
  for (Index i = 0; i < 3; ++i) {
    diagonal[i] = s[i] * (1 - s[i]);
    for (Index j = 0; j < 3; ++j) off_diagonal[3 * i + j] = i == j ? 0 : -s[i] * s[j];
    for (Index j = 0; j < 3; ++j) jacobian[3 * i + j] = s[i] * ((i == j ? 1 : 0) - s[j]);
  }
  result.jacobian_diagonal = AnyTensor(diagonal);
  result.jacobian_off_diagonal = AnyTensor(off_diagonal);
  result.jacobian = AnyTensor(jacobian);
  result.entropy = AnyTensor(Tensor<double>(Shape{}, 0.8323955));
  return result;
}

TEST_CASE("the walk through softmax shows both cases of the derivative in numbers") {
  SoftmaxOptions options;
  const SoftmaxResult result = one_two_three();
  const std::string text =
      render_trace({"softmax", options_of(options), result_of(result), {}}, {});
  const auto from = text.find("  x = ");
  REQUIRE(from != std::string::npos);
  CHECK(text.substr(from) ==
        "  x = 1, 2, 3\n"
        "\n"
        "1. scaled - less the maximum   [3] float64\n"
        "\n"
        "  -2  -1   0\n"
        "\n"
        "2. exponentials - positive   [3] float64\n"
        "  exponentials = exp(scaled)\n"
        "  [3]          = exp([3])\n"
        "  e_0 = exp(-2) = 0.1353\n"
        "  e_1 = exp(-1) = 0.3679\n"
        "  e_2 = exp(0) = 1\n"
        "\n"
        "  0.1353  0.3679  1.0000\n"
        "\n"
        "3. sums - the divisor   float64\n"
        "  sums = sum_j exponentials_j\n"
        "  sum = 0.1353 + 0.3679 + 1\n"
        "      = 1.503\n"
        "\n"
        "  1.503\n"
        "\n"
        "4. softmax - weights   [3] float64\n"
        "  softmax = s_i = exponentials_i / sums\n"
        "  s_0 = 0.1353 / 1.503 = 0.09003\n"
        "  s_1 = 0.3679 / 1.503 = 0.2447\n"
        "  s_2 = 1 / 1.503 = 0.6652\n"
        "\n"
        "  0.0900  0.2447  0.6652\n"
        "\n"
        "5. jacobian_diagonal - case i = j   [3] float64\n"
        "  d e_i / d z_i = e_i\n"
        "  d s_i / d z_i = (e_i sum - e_i e_i) / sum^2   (quotient rule)\n"
        "                = (e_i / sum) (sum - e_i) / sum\n"
        "                = s_i (1 - s_i)\n"
        "  d s_0 / d z_0 = 0.09003 (1 - 0.09003) = 0.08193\n"
        "  d s_1 / d z_1 = 0.2447 (1 - 0.2447) = 0.1848\n"
        "  d s_2 / d z_2 = 0.6652 (1 - 0.6652) = 0.2227\n"
        "\n"
        "  0.0819  0.1848  0.2227\n"
        "\n"
        "6. jacobian_off_diagonal - case i != j   [3, 3] float64\n"
        "  d e_i / d z_j = 0\n"
        "  d s_i / d z_j = (0 sum - e_i e_j) / sum^2   (quotient rule)\n"
        "                = -(e_i / sum) (e_j / sum)\n"
        "                = -s_i s_j\n"
        "  d s_0 / d z_1 = -0.09003 * 0.2447 = -0.02203\n"
        "  d s_0 / d z_2 = -0.09003 * 0.6652 = -0.05989\n"
        "  d s_1 / d z_2 = -0.2447 * 0.6652 = -0.1628\n"
        "\n"
        "   0       -0.0220  -0.0599\n"
        "  -0.0220   0       -0.1628\n"
        "  -0.0599  -0.1628   0\n"
        "\n"
        "7. jacobian - both   [3, 3] float64\n"
        "  jacobian = s_i (delta_ij - s_j)\n"
        "  delta_ij = 1 if i = j, else 0\n"
        "\n"
        "   0.0819  -0.0220  -0.0599\n"
        "  -0.0220   0.1848  -0.1628\n"
        "  -0.0599  -0.1628   0.2227\n"
        "\n"
        "entropy  0.8324 nats\n");
}

TEST_CASE("the numbers of a walk are the computed ones, which saturation does not lose") {
  SoftmaxResult result = one_two_three();
  result.softmax = AnyTensor(Tensor<double>({3}, {0, 3.72e-44, 1}));
  result.jacobian_diagonal = AnyTensor(Tensor<double>({3}, {0, 3.72e-44, 3.72e-44}));
  const std::string text = render_trace({"softmax", {}, result_of(result), {}}, {});
  CHECK(test::contains(text, "d s_2 / d z_2 = 1 (1 - 1) = 3.72e-44\n"));
}

TEST_CASE("of long rows the walk works out the ends") {
  SoftmaxResult result;
  result.scaled = result.exponentials = result.softmax = AnyTensor(Tensor<double>({20}, 0.05));
  result.jacobian_off_diagonal = AnyTensor(Tensor<double>(Shape{20, 20}));
  const std::string text = render_trace({"softmax", {}, result_of(result), {}}, {});
  CHECK(test::contains(text, "  e_2  = exp(0.05) = 0.05\n  e_17 = exp(0.05) = 0.05\n"));
  CHECK(test::contains(text, "  d s_0 / d z_6 = "));
  CHECK_FALSE(test::contains(text, "  d s_0 / d z_7 = "));
}

TEST_CASE("a walk without steps shows the rows") {
  SoftmaxResult result;
  result.rows = test::sample_rows().rows;
  const std::string text = render_trace({"softmax", {}, result_of(result), {}}, {});
  CHECK(text.rfind(" d_k  scaling", 0) == 0);
}

}  // namespace
}  // namespace attnlab
