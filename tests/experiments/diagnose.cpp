#include "attnlab/experiments/diagnose.h"

#include "catch.h"
#include "experiments/wrong_attention.h"

namespace attnlab {
namespace {

using At = std::size_t;
using Names = std::vector<std::string>;
bool causal(At /*b*/, At /*h*/, At i, At j) { return j <= i; }

DiagnoseResult diagnosed(Situation s, const Numbers& output) {
  s.options.candidate = source(s.output(), output);
  return diagnose(s.options, {});
}

DiagnoseRow row_of(const DiagnoseResult& result, const std::string& mistake) {
  for (const DiagnoseRow& row : result.rows) {
    if (row.mistake == mistake) return row;
  }
  FAIL(mistake);
  return {};
}

TEST_CASE("what was asked for is named as such, whatever the options") {
  Situation s(5, 7, 3, 2);
  s.options.mask.causal = true;
  s.options.scores.softcap = s.call.softcap = .9;
  s.options.scores.scale = s.call.scale = .8;
  s.options.mask.mask = given<double>({1, 7}, {.5, -1, 0, 2, -.3, -INFINITY, .1});
  const Numbers bias = {.5, -1, 0, 2, -.3, 0, .1};
  s.call.bias = [=](At, At, At, At j) { return bias[j]; };
  s.call.sees = [](At, At, At i, At j) { return j <= i && j != 5; };
  const DiagnoseResult result = diagnosed(s, reference::attend(s.call).output);
  CHECK(result.equal);
  CHECK(result.found.empty());
  CHECK(result.verdict.find("equals what you asked for to ") == 0);
  CHECK(result.tolerance < 1e-14);
  CHECK(result.rows[0].mistake == "correct");
  CHECK(result.rows[0].rank == 1);
  CHECK(result.rows[0].explains);
  CHECK(result.rows[0].max_abs_error < 1e-15);
  CHECK_FALSE(result.departs_from.has_value());
  for (std::size_t i = 1; i < result.rows.size(); ++i) {
    CHECK_FALSE(result.rows[i].explains);
    CHECK(result.rows[i].rank == static_cast<Index>(i) + 1);
    const bool same_kind = !result.rows[i].as_asked &&
                           result.rows[i].mistake.find("16_accumulation") == std::string::npos;
    if (i > 1 && same_kind) CHECK(result.rows[i - 1].rms_error <= result.rows[i].rms_error);
  }
}

TEST_CASE("what lies under the mask never matters, and NaN elsewhere does") {
  Situation s(3, 4, 3, 2, 1, 1, 1);
  s.options.mask.causal = true;
  s.call.sees = causal;
  const Numbers output = reference::attend(s.call).output;
  s.call.k[3 * 3] = s.call.v[3 * 2 + 1] = std::nan("");
  s.give();
  CHECK(diagnosed(s, output).equal);
  Numbers wrong = output;
  wrong[4] = std::nan("");
  const DiagnoseResult result = diagnosed(s, wrong);
  CHECK_FALSE(result.equal);
  CHECK(std::isinf(result.rows[0].max_abs_error));
  CHECK(result.row == 2);
}

TEST_CASE("mistakes that these inputs cannot show are not blamed, but told") {
  Situation s(5, 5, 3, 2);
  s.options.mask.causal = true;
  s.call.sees = causal;
  const DiagnoseResult right = diagnosed(s, reference::attend(s.call).output);
  CHECK(right.equal);
  CHECK(row_of(right, "bottom_right").as_asked);
  CHECK_FALSE(row_of(right, "unscaled").as_asked);
  CHECK(mentions(right.notes, "cannot tell what you asked for from"));
  CHECK(mentions(right.notes, "bottom_right"));
  CHECK_FALSE(mentions(right.notes, "unscaled"));

  Situation empty(5, 7, 3, 2);
  empty.options.mask.causal = true;
  empty.options.mask.offset = -1;
  empty.call.sees = [](At, At, At i, At j) { return j < i; };
  Numbers weights = reference::attend(empty.call).weights;
  for (At at = 0; at < weights.size(); ++at) {
    if (at / 7 % 5 == 0) weights[at] = 1.0 / 7;
  }
  const DiagnoseResult filled = diagnosed(empty, mix(empty.call, weights));
  CHECK(filled.found == Names{"empty_rows_mean"});
  CHECK(filled.verdict.find("on these inputs the same as finite_fill") != std::string::npos);
}

TEST_CASE("two mistakes at once are named both") {
  Situation s(7, 5, 3, 2);
  s.options.mask.causal = true;
  s.call.sees = [](At, At, At i, At j) { return j + 2 <= i; };
  s.call.scale = 1;
  const DiagnoseResult two = diagnosed(s, reference::attend(s.call).output);
  CHECK(two.found == Names{"unscaled", "bottom_right"});
  CHECK(two.rows[1].mistake == "unscaled + bottom_right");
  CHECK(two.verdict.find("equals attention with scores that are not scaled and the diagonal "
                         "bottom-right to ") == 0);
  CHECK(two.verdict.find("you asked for the scale 0.5774 and top-left") != std::string::npos);
  CHECK(two.departs_from == "correct");

  // As PyTorch has it where there are more queries than keys.
  s.call.scale = 1 / std::sqrt(3.0);
  Numbers weights = reference::attend(s.call).weights;
  for (At at = 0; at < weights.size(); ++at) {
    if (at / 5 % 7 < 2) weights[at] = std::nan("");
  }
  CHECK(diagnosed(s, mix(s.call, weights)).found == Names{"bottom_right", "empty_rows_nan"});

  // Nobody asked for a mask, whose rows without keys are filled besides.
  s.options.mask.causal = false;
  CHECK(diagnosed(s, mix(s.call, weights)).found ==
        Names{"causal_added_bottom_right", "empty_rows_nan"});
}

TEST_CASE("16-bit sums are named on top of a mistake") {
  Situation s(9, 40, 32, 4);
  s.options.mask.causal = true;
  s.call.sees = [](At, At, At i, At j) { return j <= i + 31; };
  const DiagnoseResult result = diagnosed(s, attend_in<Float16>(s.call));
  INFO(result.verdict);
  CHECK(result.found == Names{"bottom_right", "float16_accumulation"});
  CHECK(result.verdict.find("is as far from attention with the diagonal bottom-right (root mean "
                            "square ") == 0);
}

TEST_CASE("what nothing explains is placed, and a tile boundary is seen") {
  Situation s(80, 12, 3, 2);
  Numbers output = reference::attend(s.call).output;
  for (At i = 64; i < 80; ++i) output[((0 * 4 + 2) * 80 + i) * 2 + 1] += .25;
  for (At i = 66; i < 80; ++i) output[((1 * 4 + 2) * 80 + i) * 2] *= 1.5;
  const DiagnoseResult result = diagnosed(s, output);
  CHECK(result.found.empty());
  CHECK_FALSE(result.equal);
  CHECK(result.verdict.find("follows no mistake known here") == 0);
  CHECK(result.verdict.find("30 of 640 rows are apart, all of head 2") != std::string::npos);
  CHECK(result.departs_from == "correct");
  CHECK(result.batch == 0);
  CHECK(result.head == 2);
  CHECK(result.row == 64);
  CHECK(result.column == 1);
  CHECK(result.tile == 64);
  CHECK(result.rows[0].rows_apart == 30);

  for (At i = 63; i < 80; ++i) output[((1 * 4 + 2) * 80 + i) * 2] *= 1.5;
  CHECK_FALSE(diagnosed(s, output).tile.has_value());
}

TEST_CASE("the nearest mistake is what an unexplained output is held against") {
  Situation s(5, 7, 3, 2);
  s.options.mask.causal = true;
  s.call.sees = [](At, At, At i, At j) { return j <= i + 2; };
  Numbers output = reference::attend(s.call).output;
  output[(1 * 4 * 5 + 3) * 2] += 1e-3;
  const DiagnoseResult result = diagnosed(s, output);
  CHECK(result.found.empty());
  CHECK(result.rows[1].mistake == "bottom_right");
  CHECK(result.rows[1].max_abs_error == Approx(1e-3));
  CHECK(result.departs_from == "bottom_right");
  CHECK(result.batch == 1);
  CHECK(result.head == 0);
  CHECK(result.row == 3);
  CHECK(result.verdict.find("the nearest is attention with the diagonal bottom-right, to 0.001") !=
        std::string::npos);
}

TEST_CASE("a candidate is held to what its dtype can be") {
  Situation s(5, 7, 3, 2);
  const Numbers output = reference::attend(s.call).output;
  const TensorSource wide = source(s.output(), output);
  s.options.sizes.dtype = Precision::float64;
  const auto with = [&](DType dtype) {
    s.options.candidate.values = wide.values->cast(dtype);
    return diagnose(s.options, {});
  };
  CHECK(with(DType::float64).tolerance < 1e-14);
  double before = 1e-14;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const DiagnoseResult result = with(dtype);
    CHECK(result.equal);
    CHECK(result.tolerance > 5 * before);
    CHECK(result.tolerance < .05);
    before = result.tolerance;
  }
  // The dtype of the inputs counts where it is the narrower one.
  s.options.candidate = wide;
  s.options.sizes.dtype = Precision::float16;
  CHECK(diagnose(s.options, {}).equal);
  s.options.tolerance = 1e-9;
  CHECK_FALSE(diagnose(s.options, {}).equal);
}

TEST_CASE("the threads do not change a diagnosis") {
  Situation s(5, 7, 3, 2);
  Numbers output = reference::attend(s.call).output;
  output[3] += .1;
  s.options.run.threads = 1;
  const DiagnoseResult one = diagnosed(s, output);
  s.options.run.threads = 3;
  const DiagnoseResult three = diagnosed(s, output);
  REQUIRE(one.rows.size() == three.rows.size());
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    CHECK(one.rows[i].mistake == three.rows[i].mistake);
    CHECK(one.rows[i].max_abs_error == three.rows[i].max_abs_error);
    CHECK(one.rows[i].relative_norm == three.rows[i].relative_norm);
  }
  CHECK(one.verdict == three.verdict);
}

TEST_CASE("what cannot be diagnosed is refused") {
  Situation s(5, 7, 3, 2);
  CHECK(refusal([&] { diagnose(s.options, {}); }) ==
        "candidate: is needed: the output to be explained");
  s.options.candidate = filled({2, 5, 4, 2}, 1);
  CHECK(refusal([&] { diagnose(s.options, {}); }) ==
        "candidate: got [2, 5, 4, 2], need the shape of the output, [2, 4, 5, 2]");
  DiagnoseOptions large;
  large.sizes.n = 1 << 13;
  large.sizes.d_k = 64;
  large.candidate = filled({1, 1}, 1);
  CHECK(refusal([&] { diagnose(large, {}); }).find("every mistake would take 1.1e+10") !=
        std::string::npos);
}

}  // namespace
}  // namespace attnlab
