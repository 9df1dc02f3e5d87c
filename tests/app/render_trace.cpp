#include <cmath>
#include <limits>

#include "app/render_sample.h"
#include "catch.h"
#include "render/trace.h"
#include "render/worked.h"

namespace attnlab {
namespace {

using Tensors = std::optional<AnyTensor>;

struct TraceOptions {
  WordOrNumber scale = "auto";
  std::optional<double> softcap = {};

  static constexpr auto fields() {
    using O = TraceOptions;
    return std::tuple(field("scale", &O::scale, "factor"), field("softcap", &O::softcap, "cap"));
  }
};

struct TraceResult {
  Tensors q = {}, k = {}, v = {}, raw_scores = {}, scores = {}, capped_scores = {},
          masked_scores = {}, weights = {}, output = {};
  Index empty_rows = 0;

  static constexpr auto fields() {
    using R = TraceResult;
    return std::tuple(field("q", &R::q, "what is sought", {.shape = "[.., heads, n, d_k]"}),
                      field("k", &R::k, "what is offered", {.shape = "[.., kv_heads, m, d_k]"}),
                      field("v", &R::v, "what is carried", {.shape = "[.., kv_heads, m, d_v]"}),
                      field("raw_scores", &R::raw_scores, "matches",
                            {.formula = "q k^T", .shape = "[.., heads, n, m]"}),
                      field("scores", &R::scores, "scaled",
                            {.formula = "scale raw_scores", .shape = "[.., heads, n, m]"}),
                      field("capped_scores", &R::capped_scores, "capped",
                            {.formula = "C tanh(scores / C)", .shape = "[.., heads, n, m]"}),
                      field("masked_scores", &R::masked_scores, "masked",
                            {.formula = "mask(capped_scores)", .shape = "[.., heads, n, m]"}),
                      field("weights", &R::weights, "rows sum to 1",
                            {.formula = "softmax(masked_scores)", .shape = "[.., heads, n, m]"}),
                      field("output", &R::output, "averages",
                            {.formula = "weights v", .shape = "[.., heads, n, d_v]"}),
                      field("empty_rows", &R::empty_rows, "rows without a key"));
  }
};

// Two queries and keys of width 4, so that the scale is 1/2; causal.
TraceResult small_attention() {
  TraceResult result;
  result.q = AnyTensor(Tensor<double>({2, 4}, {1, 0, 0, 1, 2, -1, 0, 0}));
  result.k = AnyTensor(Tensor<double>({2, 4}, {1, 2, 3, 4, 0, -2, 1, 0}));
  result.v = AnyTensor(Tensor<double>({2, 1}, {10, 20}));
  result.raw_scores = AnyTensor(Tensor<double>({2, 2}, {5, 0, 0, 2}));
  result.scores = AnyTensor(Tensor<double>({2, 2}, {2.5, 0, 0, 1}));
  const double inf = std::numeric_limits<double>::infinity();
  result.masked_scores = AnyTensor(Tensor<double>({2, 2}, {2.5, -inf, 0, 1}));
  const double large = 1 / (1 + std::exp(-1.));
  result.weights = AnyTensor(Tensor<double>({2, 2}, {1, 0, 1 - large, large}));
  result.output = AnyTensor(Tensor<double>({2, 1}, {10, 10 + 10 * large}));
  return result;
}

std::string trace(const TraceResult& result, TraceOptions options = {}, const Style& style = {}) {
  return render_trace({"attend", options_of(options), result_of(result), {}}, style);
}

TEST_CASE("the walk through attention follows one query through every number") {
  const Style style{.row_names = {"the", "it"}, .column_names = {"the", "it"}};
  CHECK(trace(small_attention(), {}, style) ==
        "Attention(Q, K, V) = softmax(scale Q K^T) V: every query is matched with every key, the\n"
        "matches become weights, and the output is the average of the values under these "
        "weights.\n"
        "\n"
        "Followed below: query 1 (it) and the key it attends to most, 1 (it).\n"
        "\n"
        "1. q - what is sought   [2, 4] float64\n"
        "\n"
        "  the   1   0   0   1\n"
        "  it    2  -1   0   0\n"
        "\n"
        "2. k - what is offered   [2, 4] float64\n"
        "\n"
        "  the   1   2   3   4\n"
        "  it    0  -2   1   0\n"
        "\n"
        "3. v - what is carried   [2, 1] float64\n"
        "\n"
        "  the  10\n"
        "  it   20\n"
        "\n"
        "4. raw_scores - matches   [2, 2] float64\n"
        "  raw_scores = q k^T\n"
        "  [2, 2]     = [2, 4] [2, 4]^T\n"
        "  raw_scores[1, 1] = q[1] . k[1]\n"
        "                   = 2*0 + (-1)*(-2)\n"
        "                   = 2\n"
        "\n"
        "       the  it\n"
        "  the    5   0\n"
        "  it     0   2\n"
        "\n"
        "5. scores - scaled   [2, 2] float64\n"
        "  scores = scale raw_scores\n"
        "  [2, 2] = scale [2, 2]\n"
        "  scale        = 1/sqrt(d_k) = 1/sqrt(4) = 0.5\n"
        "  scores[1, 1] = 0.5 * 2 = 1\n"
        "\n"
        "       the   it\n"
        "  the  2.5  0\n"
        "  it   0    1.0\n"
        "\n"
        "6. masked_scores - masked   [2, 2] float64\n"
        "  masked_scores = mask(scores)\n"
        "  [2, 2]        = mask([2, 2])\n"
        "  exp(-inf) = 0, no weight; query 1 sees 2 of 2 keys\n"
        "\n"
        "        the    it\n"
        "  the   2.5  -inf\n"
        "  it    0     1.0\n"
        "\n"
        "7. weights - rows sum to 1   [2, 2] float64\n"
        "  weights = softmax(masked_scores)\n"
        "  [2, 2]  = softmax([2, 2])\n"
        "  max                         = 1\n"
        "  exp(masked_scores[1] - max) = 0.3679, 1\n"
        "  sum                         = 1.368\n"
        "  weights[1, 1]               = exp(1 - 1) / sum = 1 / 1.368 = 0.7311\n"
        "\n"
        "          the      it\n"
        "  the  1.0000  0\n"
        "  it   0.2689  0.7311\n"
        "\n"
        "8. output - averages   [2, 1] float64\n"
        "  output = weights v\n"
        "  [2, 1] = [2, 2] [2, 1]\n"
        "  output[1, 0] = weights[1] . v[:, 0]\n"
        "               = 0.2689*10 + 0.7311*20\n"
        "               = 17.31\n"
        "\n"
        "  the  10.00\n"
        "  it   17.31\n"
        "\n"
        "empty_rows  0\n");
}

TEST_CASE("the scale of a walk is the one that was used") {
  TraceResult result = small_attention();
  result.scores = AnyTensor(Tensor<double>({2, 2}, {-5, 0, 0, -2}));
  CHECK(test::contains(trace(result, {.scale = -1.}), "scores[1, 1] = (-1) * 2 = -2\n"));
  result.scores = result.raw_scores;
  CHECK(test::contains(trace(result, {.scale = "none"}), "  scale        = 1\n"));
}

TEST_CASE("a softcap is a step of its own, and the mask follows it") {
  TraceResult result = small_attention();
  result.capped_scores = AnyTensor(Tensor<double>({2, 2}, {1.697, 0, 0, 2 * std::tanh(0.5)}));
  const std::string text = trace(result, {.softcap = 2.});
  CHECK(test::contains(text, "6. capped_scores"));
  CHECK(test::contains(text, "capped_scores[1, 1] = 2 tanh(1 / 2) = 0.9242\n"));
  CHECK(test::contains(text, "masked_scores = mask(capped_scores)\n"));
}

TEST_CASE("without a mask the weights come from the scores") {
  TraceResult result = small_attention();
  result.masked_scores.reset();
  CHECK(test::contains(trace(result), "weights = softmax(scores)\n"));
}

TEST_CASE("terms that do not give the computed element are not shown") {
  TraceResult result = small_attention();
  result.raw_scores = AnyTensor(Tensor<double>({2, 2}, {5, 0, 0, 3}));
  result.output = AnyTensor(Tensor<double>({2, 1}, {10, 40}));
  const std::string text = trace(result);
  CHECK_FALSE(test::contains(text, "q[1] . k[1]"));
  CHECK_FALSE(test::contains(text, "weights[1] . v"));
}

TEST_CASE("masked terms stay out of the worked sum") {
  const AnyTensor a = Tensor<double>({1, 3}, {0.5, 0, 0.5});
  const AnyTensor b = Tensor<double>({3, 1}, {1, std::numeric_limits<double>::quiet_NaN(), 3});
  const auto worked =
      product_equation("y", "a . b", row_of(a, 0), column_of(b, 0), std::nullopt, 2, 4);
  REQUIRE(worked.size() == 1);
  CHECK(worked[0].rights == std::vector<std::string>{"a . b", "0.5*1 + 0.5*3", "2"});
}

TEST_CASE("long sums keep their ends") {
  CHECK(sum_text({"a", "b", "c", "d", "e", "f"}) == "a + b + c + d + e + f");
  CHECK(sum_text({"a", "b", "c", "d", "e", "f", "g"}) == "a + b + c + ... + e + f + g");
}

TEST_CASE("names in a formula are replaced whole") {
  const auto brackets = [](const std::string& name) { return "<" + name + ">"; };
  CHECK(replace_names("C tanh(raw_scores / C) w_q2^T", brackets) ==
        "<C> <tanh>(<raw_scores> / <C>) <w_q2>^<T>");
}

TEST_CASE("empty attention has steps and no numbers to follow") {
  TraceResult result;
  result.q = AnyTensor(Tensor<double>(Shape{0, 4}));
  result.k = AnyTensor(Tensor<double>(Shape{0, 4}));
  result.raw_scores = result.scores = result.weights = AnyTensor(Tensor<double>(Shape{0, 0}));
  CHECK(test::contains(trace(result), "5. weights - rows sum to 1   [0, 0] float64"));
  TraceResult masked = small_attention();
  masked.weights = AnyTensor(Tensor<double>(Shape{2, 2}));
  masked.output = AnyTensor(Tensor<double>(Shape{2, 1}));
  CHECK(test::contains(trace(masked),
                       "output[0, 0] = weights[0] . v[:, 0]\n"
                       "               = 0\n"));
}

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

struct LayerResult {
  Tensors x = {}, w_q = {}, b_q = {}, q = {}, k = {}, weights = {}, heads = {}, concat = {},
          w_o = {}, output = {};

  static constexpr auto fields() {
    using R = LayerResult;
    return std::tuple(
        field("x", &R::x, "tokens", {.shape = "[.., n, d_model]"}),
        field("w_q", &R::w_q, "projection"), field("b_q", &R::b_q, "bias"),
        field("q", &R::q, "queries", {.formula = "split(query w_q + b_q)"}),
        field("k", &R::k, "keys", {.formula = "split(key w_k + b_k)"}),
        field("weights", &R::weights, "weights", {.shape = "[.., heads, n, m]"}),
        field("heads", &R::heads, "findings", {.formula = "weights v"}),
        field("concat", &R::concat, "side by side", {.formula = "concat(head_1, ..., head_h)"}),
        field("w_o", &R::w_o, "projection"),
        field("output", &R::output, "mixed", {.formula = "concat w_o + b_o"}));
  }
};

TEST_CASE("the walk through a layer works out its projections and shows what is there") {
  LayerResult result;
  result.x = AnyTensor(Tensor<double>({1, 2}, {1, 2}));
  result.w_q = AnyTensor(Tensor<double>({2, 2}, {3, 4, 5, 6}));
  result.b_q = AnyTensor(Tensor<double>({2}, {-1, 1}));
  result.q = AnyTensor(Tensor<double>({2, 1, 1}, {12, 17}));
  result.k = AnyTensor(Tensor<double>({2, 1, 1}, {1, 1}));
  result.weights = AnyTensor(Tensor<double>({2, 1, 1}, {1, 1}));
  result.heads = AnyTensor(Tensor<double>({2, 1, 1}, {7, 8}));
  result.concat = AnyTensor(Tensor<double>({1, 2}, {7, 8}));
  result.w_o = AnyTensor(Tensor<double>({2, 1}, {1, 10}));
  result.output = AnyTensor(Tensor<double>({1, 1}, {87}));
  const std::string text = render_trace({"multihead", {}, result_of(result), {}}, {});
  CHECK(test::contains(text, "Followed below in the first head: query 0 and the key it attends"));
  CHECK(test::contains(text,
                       "  q         = split(x w_q + b_q)\n"
                       "  [2, 1, 1] = split([1, 2] [2, 2] + [2])\n"
                       "  q[0, 0] = x[0] . w_q[:, 0] + b_q[0]\n"
                       "          = 1*3 + 2*5 + (-1)\n"
                       "          = 12\n"));
  CHECK(test::contains(text, "  k         = split(x w_k)\n"));
  CHECK(
      test::contains(text, "  concat = columns 0 to 0 from head 0, columns 1 to 1 from head 1\n"));
  CHECK(test::contains(text,
                       "  output = concat w_o\n"
                       "  [1, 1] = [1, 2] [2, 1]\n"
                       "  output[0, 0] = concat[0] . w_o[:, 0]\n"
                       "               = 7*1 + 8*10\n"
                       "               = 87\n"));
}

TEST_CASE("any other result is walked through matrix by matrix") {
  const test::SampleResult result = test::sample_result();
  const std::string text = render_trace({"other", {}, result_of(result), {}}, {});
  CHECK(text ==
        "1. weights - how much of each value a query takes   [2, 3] float64\n"
        "  weights = softmax(scores)\n"
        "\n"
        "  0.2500  0.7500  0\n"
        "  0.3333  0.3333  0.3333\n"
        "\n"
        "2. output - the averages   [2, 2] float32\n"
        "  output = weights v\n"
        "  [2, 2] = [2, 3] v\n"
        "\n"
        "    0.1   -2.5\n"
        "    0    100.1\n"
        "\n"
        "empty_rows  1\n"
        "entropy     0.8324 nats\n"
        "undefined   -\n");
}

TEST_CASE("a walk ends at every width") {
  const TraceResult result = small_attention();
  for (int width = 1; width <= 200; ++width) {
    CHECK(test::contains(trace(result, {}, {.width = width}), "\nempty_rows  0\n"));
  }
}

}  // namespace
}  // namespace attnlab
