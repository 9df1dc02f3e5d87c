#include "attnlab/experiments/attend.h"

#include <cmath>

#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

// n queries of zero against values 1, 2, ..: the output shows which keys each query saw.
AttendOptions counting(Index n, Index m) {
  AttendOptions options;
  options.query_key.q = filled({n, 1}, 0);
  options.query_key.k = filled({m, 1}, 0);
  Tensor<double> v({m, 1});
  for (Index j = 0; j < m; ++j) v[j] = static_cast<double>(j + 1);
  options.value.v.values = AnyTensor(std::move(v));
  return options;
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance = 1e-6) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i] == Approx(expected[i]).margin(tolerance));
  }
}

TEST_CASE("a query with no key has weights and output 0, and is counted") {
  AttendOptions options;
  options.query_key.q = options.query_key.k = given<double>({2, 2}, {1, 0, 0, 1});
  options.value.v = given<double>({2, 2}, {1, 2, 3, 4});
  options.mask.mask = given<bool>({2, 2}, {true, true, false, false});
  options.mask.mask_kind = MaskKind::attend;
  const AttendResult result = attend(options, {"weights"});
  check_close(values_of(result.attention.weights), {.669762, .330238, 0, 0});
  check_close(values_of(result.output), {1.660477, 2.660477, 0, 0});
  CHECK(result.empty_rows == 1);
  CHECK(mentions(result.notes, "1 row has no key"));
  CHECK(mentions(result.notes, "true (1) may attend"));
}

TEST_CASE("an additive mask of -1e9 is arithmetic, not masking") {
  AttendOptions options;
  options.query_key.q = given<double>({1, 2}, {1, 0});
  options.query_key.k = given<double>({2, 2}, {1, 0, 0, 1});
  options.value.v = given<double>({2, 2}, {1, 2, 3, 4});
  options.mask.mask = given<double>({1, 2}, {-1e9, -1e9});
  check_close(values_of(attend(options, {"weights"}).attention.weights), {.669762, .330238});
  options.sizes.dtype = Precision::float32;
  check_close(values_of(attend(options, {"weights"}).attention.weights), {.5, .5});
}

TEST_CASE("the diagonal is named where queries and keys differ in number") {
  AttendOptions options = counting(2, 5);
  options.mask.causal = true;
  AttendResult result = attend(options, {});
  check_close(values_of(result.output), {1, 1.5});
  CHECK(mentions(result.notes, "top-left"));
  options.mask.align = Align::bottom_right;
  result = attend(options, {});
  check_close(values_of(result.output), {2.5, 3});
  CHECK(mentions(result.notes, "bottom-right"));
  options.mask.align = Align::automatic;
  options.mask.offset = 1;
  check_close(values_of(attend(options, {}).output), {1.5, 2});
  options.mask.align = Align::top_left;
  CHECK(refusal([&] { attend(options, {}); }).find("either an offset or an alignment") !=
        std::string::npos);
}

TEST_CASE("the polarity of a boolean mask is the caller's to name") {
  AttendOptions options = counting(3, 3);
  options.mask.mask =
      given<bool>({3, 3}, {true, false, false, true, true, false, true, true, true});
  options.mask.mask_kind = MaskKind::attend;
  check_close(values_of(attend(options, {}).output), {1, 1.5, 2});
  options.mask.mask_kind = MaskKind::ignore;
  check_close(values_of(attend(options, {}).output), {2.5, 3, 0});
  options.mask.mask_kind = MaskKind::automatic;
  CHECK(refusal([&] { attend(options, {}); }).find("polarity") != std::string::npos);
}

TEST_CASE("a numeric mask is added, with a warning when it holds only 0 and 1") {
  AttendOptions options = counting(3, 3);
  options.mask.mask = given<double>({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1});
  const AttendResult result = attend(options, {"weights"});
  const std::vector<double> weights = values_of(result.attention.weights);
  check_close({weights[0], weights[1], weights[2]}, {.576117, .211942, .211942});
  check_close(values_of(result.output), {1.635825, 1.733044, 2});
  CHECK(mentions(result.notes, "holds only 0 and 1"));
  options.mask.mask_kind = MaskKind::attend;
  check_close(values_of(attend(options, {}).output), {1, 1.5, 2});
  options.mask.mask = given<double>({3, 3}, {2, 0, 0, 1, 1, 0, 1, 1, 1});
  CHECK(refusal([&] { attend(options, {}); }).find("other than 0 and 1") != std::string::npos);
}

TEST_CASE("masks compose with AND") {
  AttendOptions options = counting(3, 3);
  options.mask.causal = true;
  options.mask.mask = given<bool>({1, 3}, {true, false, false});
  options.mask.mask_kind = MaskKind::ignore;
  check_close(values_of(attend(options, {}).output), {0, 2, 2.5});
}

TEST_CASE("a window counts the keys beside self") {
  AttendOptions options = counting(5, 5);
  options.mask.causal = true;
  options.mask.window_left = 2;
  check_close(values_of(attend(options, {}).output), {1, 1.5, 2, 3, 4});
  options.mask.window_left = 3;
  check_close(values_of(attend(options, {}).output), {1, 1.5, 2, 2.5, 3.5});
}

TEST_CASE("key lengths hide padding, and are checked") {
  AttendOptions options = counting(4, 4);
  options.mask.key_lengths = given<std::int64_t>({1}, {2});
  const std::vector<double> weights = values_of(attend(options, {"weights"}).attention.weights);
  for (std::size_t i = 0; i < 4; ++i) {
    check_close({weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3]},
                {.5, .5, 0, 0});
  }
  for (const double wrong : {5.0, -1.0, 1.5}) {
    options.mask.key_lengths = given<double>({1}, {wrong});
    CHECK(refusal([&] { attend(options, {}); }).find("from 0 to 4") != std::string::npos);
  }
  options.mask.key_lengths = given<std::int64_t>({2}, {2, 3});
  CHECK(refusal([&] { attend(options, {}); }).find("key_lengths") != std::string::npos);
}

TEST_CASE("softcap comes before the mask") {
  AttendOptions options;
  options.query_key.q = given<double>({1, 1}, {1});
  options.query_key.k = given<double>({2, 1}, {1, 2});
  options.value.v = given<double>({2, 1}, {1, 2});
  options.scores.softcap = 2;
  check_close(values_of(attend(options, {"weights"}).attention.weights), {.354583, .645417});
  options.mask.key_lengths = given<std::int64_t>({1}, {1});
  check_close(values_of(attend(options, {"weights"}).attention.weights), {1, 0}, 0);
}

TEST_CASE("scale is 1/sqrt(d_k), none or a number") {
  AttendOptions options;
  options.query_key.q = given<double>({1, 4}, {1, 1, 1, 1});
  options.query_key.k = given<double>({2, 4}, {1, 1, 1, 1, 0, 0, 0, 0});
  options.value.v = filled({2, 1}, 0);
  const auto first_weight = [&](WordOrNumber scale) {
    options.scores.scale = scale;
    return values_of(attend(options, {"weights"}).attention.weights)[0];
  };
  CHECK(first_weight("auto") == Approx(.880797).margin(1e-6));
  CHECK(first_weight("none") == Approx(.982014).margin(1e-6));
  CHECK(first_weight(1.0) == Approx(.982014).margin(1e-6));
  CHECK(first_weight(1 / std::sqrt(8.0)) == Approx(.804430).margin(1e-6));
  CHECK(first_weight(.25) == Approx(.731059).margin(1e-6));
  CHECK(first_weight(0.0) == .5);
  CHECK(first_weight(-.5) == Approx(1 - .880797).margin(1e-6));
}

TEST_CASE("results keep the form of the inputs") {
  const auto shapes = [](const Shape& q, const Shape& k, const Shape& v, std::optional<Index> heads,
                         std::optional<Index> kv_heads) {
    AttendOptions options;
    options.query_key.q = filled(q, 1);
    options.query_key.k = filled(k, 1);
    options.value.v = filled(v, 1);
    options.sizes.heads = heads;
    options.sizes.kv_heads = kv_heads;
    const AttendResult result = attend(options, {"weights", "present_k"});
    return result.output->shape().str() + result.attention.weights->shape().str() +
           result.present_k->shape().str();
  };
  CHECK(shapes({2, 4}, {3, 4}, {3, 5}, {}, {}) == "[2, 5][2, 3][3, 4]");
  CHECK(shapes({4, 2, 4}, {2, 3, 4}, {2, 3, 5}, {}, {}) == "[4, 2, 5][4, 2, 3][2, 3, 4]");
  CHECK(shapes({2, 4, 2, 4}, {2, 2, 3, 4}, {2, 2, 3, 5}, {}, {}) ==
        "[2, 4, 2, 5][2, 4, 2, 3][2, 2, 3, 4]");
  CHECK(shapes({2, 8}, {3, 8}, {3, 10}, 2, {}) == "[2, 10][2, 2, 3][1, 2, 3, 4]");
  CHECK(shapes({5, 2, 16}, {5, 3, 8}, {5, 3, 10}, 4, 2) == "[5, 2, 20][5, 4, 2, 3][5, 2, 3, 4]");
}

TEST_CASE("shapes that do not fit are refused by name, with both numbers") {
  const auto refused = [](const Shape& q, const Shape& k, const Shape& v,
                          std::optional<Index> heads = {}) {
    AttendOptions options;
    options.query_key.q = filled(q, 1);
    options.query_key.k = filled(k, 1);
    options.value.v = filled(v, 1);
    options.sizes.heads = heads;
    return refusal([&] { attend(options, {}); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  const std::string lengths = refused({2, 8}, {5, 8}, {6, 8});
  CHECK(has(lengths, "5"));
  CHECK(has(lengths, "6"));
  CHECK(has(lengths, "v"));
  CHECK(has(refused({2, 10}, {2, 10}, {2, 10}, 3), "10"));
  CHECK(has(refused({1, 2, 2, 4}, {4, 2, 2, 4}, {4, 2, 2, 4}), "4"));
  CHECK(has(refused({3, 2, 4}, {2, 2, 4}, {2, 2, 4}), "3"));
  CHECK(has(refused({2, 4}, {1, 2, 4}, {2, 4}), "rank"));
  CHECK(has(refused({4}, {4}, {4}), "[4]"));
  CHECK(has(refused({2, 0}, {2, 0}, {2, 3}), "d_k"));
}

TEST_CASE("a past comes before the keys, and queries stand after it") {
  AttendOptions options = counting(2, 2);
  options.value.past.k = filled({3, 1}, 0);
  options.value.past.v = given<double>({3, 1}, {10, 20, 30});
  options.mask.causal = true;
  const AttendResult result = attend(options, {"present_v", "weights"});
  check_close(values_of(result.present_v), {10, 20, 30, 1, 2});
  check_close(values_of(result.output), {61.0 / 4, 63.0 / 5});
  CHECK(mentions(result.notes, "after the 3 past keys"));
  options.mask.align = Align::top_left;
  check_close(values_of(attend(options, {}).output), {10, 15});
  options.value.past.v = {};
  CHECK(refusal([&] { attend(options, {}); }).find("past_v") != std::string::npos);
}

TEST_CASE("16-bit inputs are computed in float32 and rounded once") {
  AttendOptions options;
  options.sizes.n = 3;
  options.sizes.dtype = Precision::bfloat16;
  const AttendResult half = attend(options, {"q", "k", "v"});
  AttendOptions wider;
  wider.query_key.q.values = half.q;
  wider.query_key.k.values = half.k;
  wider.value.v.values = half.v;
  wider.sizes.dtype = Precision::float32;
  const AttendResult single = attend(wider, {});
  CHECK(single.output->dtype() == DType::float32);
  CHECK(half.output->dtype() == DType::bfloat16);
  // From the same inputs the output differs by its last rounding only.
  const AnyTensor rounded = single.output->cast(DType::bfloat16);
  CHECK(values_of(half.output) == values_of(rounded));
}

TEST_CASE("auto precision is the widest of the inputs") {
  CHECK(resolve_precision(Precision::automatic, {DType::float16, DType::float16}) ==
        DType::float16);
  CHECK(resolve_precision(Precision::automatic, {DType::float16, DType::bfloat16}) ==
        DType::float32);
  CHECK(resolve_precision(Precision::automatic, {DType::float32, DType::float16}) ==
        DType::float32);
  CHECK(resolve_precision(Precision::automatic, {DType::float32, DType::int8}) == DType::float64);
  CHECK(resolve_precision(Precision::float16, {DType::float64}) == DType::float16);
}

TEST_CASE("without files Q, K and V are drawn, and sizes shape them") {
  AttendOptions options;
  options.sizes.n = 3;
  options.sizes.m = 4;
  options.sizes.d_k = 2;
  options.sizes.d_v = 6;
  AttendResult result = attend(options, {"q", "k", "v"});
  CHECK(result.q->shape() == Shape{3, 2});
  CHECK(result.k->shape() == Shape{4, 2});
  CHECK(result.output->shape() == Shape{3, 6});
  CHECK(mentions(result.notes, "seed 0"));
  const std::vector<double> first = values_of(result.q);
  options.run.seed = 1;
  CHECK(values_of(attend(options, {"q"}).q) != first);
  options.sizes.heads = 4;
  options.sizes.kv_heads = 2;
  CHECK(attend(options, {}).output->shape() == Shape{4, 3, 6});
  options.sizes.batch = 2;
  CHECK(attend(options, {}).output->shape() == Shape{2, 4, 3, 6});
}

TEST_CASE("a size that the files do not have is refused") {
  AttendOptions options = counting(2, 5);
  options.sizes.n = 3;
  CHECK(refusal([&] { attend(options, {}); }).find("n: got 3, q has 2") != std::string::npos);
  options.sizes.n = 2;
  CHECK(refusal([&] { attend(options, {}); }).empty());
  options.value.v = {};
  CHECK(refusal([&] { attend(options, {}); }).find("v: is needed") != std::string::npos);
}

TEST_CASE("asking for matrices changes no bit of the output") {
  AttendOptions options;
  options.sizes.n = 70;
  options.sizes.m = 130;
  options.mask.causal = true;
  options.scores.dropout = .25;
  const AttendResult plain = attend(options, {});
  const AttendResult asked = attend(
      options, {"raw_scores", "scores", "capped_scores", "masked_scores", "weights", "present_k"});
  CHECK(values_of(plain.output) == values_of(asked.output));
  CHECK_FALSE(plain.attention.weights.has_value());
}

TEST_CASE("the values and sizes that end an axis") {
  AttendOptions options = counting(2, 1);
  check_close(values_of(attend(options, {"weights"}).attention.weights), {1, 1});
  options = counting(2, 0);
  AttendResult result = attend(options, {});
  check_close(values_of(result.output), {0, 0});
  CHECK(result.empty_rows == 2);
  options = counting(0, 3);
  CHECK(attend(options, {}).output->shape() == Shape{0, 1});
}

TEST_CASE("16-bit inputs are rounded before anything is computed from them") {
  for (const Precision precision : {Precision::float16, Precision::bfloat16}) {
    AttendOptions options;
    options.sizes.n = 6;
    options.sizes.heads = 2;
    options.sizes.dtype = precision;
    const AttendResult first = attend(options, {"q", "k", "v", "weights"});
    AttendOptions again;
    again.query_key.q.values = *first.q;
    again.query_key.k.values = *first.k;
    again.value.v.values = *first.v;
    const AttendResult second = attend(again, {"weights"});
    CHECK(second.output->dtype() == first.output->dtype());
    CHECK(values_of(second.output) == values_of(first.output));
    CHECK(values_of(second.attention.weights) == values_of(first.attention.weights));
  }
}

TEST_CASE("inputs beyond a 16-bit type are infinite in it, which is said") {
  AttendOptions options;
  options.query_key.q = given<double>({1, 2}, {1e5, 1});
  options.query_key.k = given<double>({1, 2}, {1, 1});
  options.value.v = given<double>({1, 1}, {7});
  CHECK_FALSE(mentions(attend(options, {}).notes, "range"));
  options.sizes.dtype = Precision::float16;
  const AttendResult result = attend(options, {"q"});
  CHECK(mentions(result.notes, "1 value of q beyond the range of float16: infinite in it"));
  CHECK(std::isinf(values_of(result.q)[0]));
  CHECK(std::isnan(values_of(result.output)[0]));
  options.sizes.dtype = Precision::float32;
  options.query_key.q = given<double>({1, 2}, {1e39, 1});
  CHECK(mentions(attend(options, {}).notes, "1 value of q beyond the range of float32"));
}

}  // namespace
}  // namespace attnlab
