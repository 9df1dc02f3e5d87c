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

TEST_CASE("names in a formula are replaced whole, those of functions are kept") {
  const auto brackets = [](const std::string& name) { return "<" + name + ">"; };
  CHECK(replace_names("C tanh(raw_scores / C) w_q2^T", brackets) ==
        "<C> tanh(<raw_scores> / <C>) <w_q2>^<T>");
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
