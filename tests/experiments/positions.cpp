// Rotary positions and linear biases through attend, weights and multihead, held against plain
// loops.

#include "attnlab/experiments/attend.h"
#include "attnlab/experiments/gradient_check.h"
#include "attnlab/experiments/multihead.h"
#include "attnlab/experiments/weights.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "experiments/turned.h"
#include "experiments/wrong_attention.h"

namespace attnlab {
namespace {

AttendOptions attend_options(const Situation& s) {
  AttendOptions options;
  options.query_key = s.options.query_key;
  options.value = s.options.value;
  return options;
}

void check_close(const std::optional<AnyTensor>& tensor, const Numbers& expected,
                 double tolerance = 1e-13) {
  const Numbers got = values_of(tensor);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(i);
    CHECK(got[i] == Approx(expected[i]).margin(tolerance));
  }
}

const Request kAll = {"q",          "k",        "rotated_q",     "rotated_k",
                      "raw_scores", "scores",   "masked_scores", "weights",
                      "present_k",  "present_v"};

TEST_CASE("queries and keys are rotated to where the diagonal puts them") {
  const Situation s(5, 7, 4, 2);
  AttendOptions options = attend_options(s);
  options.positions.rope_theta = 50;
  const auto check = [&](const std::function<double(std::size_t)>& offset) {
    const reference::Call call = rotated_call(s.call, 50, offset);
    const reference::Result expected = reference::attend(call);
    const AttendResult result = attend(options, kAll);
    check_close(result.q, s.call.q);
    check_close(result.k, s.call.k);
    check_close(result.rotated_q, call.q);
    check_close(result.rotated_k, call.k);
    check_close(result.present_k, call.k);
    check_close(result.attention.raw_scores, expected.raw_scores);
    return result;
  };
  AttendResult result = check([](std::size_t) { return 0.0; });
  CHECK(mentions(result.notes, "aligned top-left"));
  options.mask.align = Align::bottom_right;
  check([](std::size_t) { return 2.0; });
  options.mask.align = Align::automatic;
  options.mask.offset = -3;
  result = check([](std::size_t) { return -3.0; });
  CHECK(mentions(result.notes, "at offset -3"));
}

TEST_CASE("each batch entry stands at its own diagonal") {
  Situation s(5, 7, 4, 2);
  AttendOptions options = attend_options(s);
  options.positions.rope_theta = 50;
  options.positions.alibi = true;
  options.mask.align = Align::bottom_right;
  options.mask.key_lengths = given<std::int64_t>({2}, {6, 3});
  const auto offset = [](std::size_t b) { return b == 0 ? 1.0 : -2.0; };
  reference::Call call = rotated_call(s.call, 50, offset);
  call.sees = [](std::size_t b, std::size_t, std::size_t, std::size_t j) {
    return j < (b == 0 ? 6u : 3u);
  };
  call.bias = [&](std::size_t b, std::size_t h, std::size_t i, std::size_t j) {
    const double slope = std::pow(2, -2 * static_cast<double>(h + 1));  // of 4 heads
    return -slope * std::abs(static_cast<double>(i) + offset(b) - static_cast<double>(j));
  };
  const reference::Result expected = reference::attend(call);
  const AttendResult result = attend(options, kAll);
  check_close(result.attention.masked_scores, expected.masked_scores);
  check_close(result.attention.weights, expected.weights);
  check_close(result.output, expected.output);
}

TEST_CASE("with a past new queries and keys stand after it, and its keys are taken as they are") {
  Situation s(2, 7, 4, 2);
  give_past(s, 5);
  AttendOptions options = attend_options(s);
  options.positions.rope_theta = 1000;
  options.mask.causal = true;
  reference::Call call = rotated_call(
      s.call, 1000, [](std::size_t) { return 5.0; }, 5);
  call.sees = [](std::size_t, std::size_t, std::size_t i, std::size_t j) { return j <= i + 5; };
  const reference::Result expected = reference::attend(call);
  const AttendResult result = attend(options, kAll);
  check_close(result.present_k, call.k);
  check_close(result.output, expected.output);
  CHECK(result.rotated_k->shape() == Shape{2, 2, 2, 4});
  CHECK(result.k->shape() == Shape{2, 2, 2, 4});
  // The rotated keys are the last of present_k.
  const Tensor<double> keys = result.rotated_k->cast<double>(),
                       present = result.present_k->cast<double>();
  for (Index head = 0; head < 4; ++head) {
    CHECK(keys.matrix(head) == present.matrix(head).bottomRows(2));
  }
}

TEST_CASE("a sequence in steps, each given the present of the last, is the whole sequence") {
  for (const bool alibi : {false, true}) {
    const Situation whole(6, 6, 4, 3);
    AttendOptions options = attend_options(whole);
    options.positions = {.rope_theta = 100, .alibi = alibi};
    options.mask.causal = true;
    const AttendResult expected = attend(options, {});
    const auto rows = [](const TensorSource& source, Index first, Index count) -> TensorSource {
      return {.path = {}, .values = AnyTensor(keys_of(source.values->get<double>(), first, count))};
    };
    AttendOptions step = options;
    for (Index i = 0; i < 6; ++i) {
      step.query_key.q = rows(options.query_key.q, i, 1);
      step.query_key.k = rows(options.query_key.k, i, 1);
      step.value.v = rows(options.value.v, i, 1);
      const AttendResult result = attend(step, {"present_k", "present_v"});
      const Tensor<double> all = expected.output->cast<double>();
      check_close(result.output, values_of(AnyTensor(keys_of(all, i, 1))));
      step.value.past.k.values = result.present_k;
      step.value.past.v.values = result.present_v;
    }
  }
}

TEST_CASE("gradients are those of q and k before they were rotated") {
  Situation s(3, 5, 4, 2, 2, 2, 1);
  give_past(s, 2);
  AttendOptions options = attend_options(s);
  options.positions = {.rope_theta = 30, .alibi = true};
  options.scores.softcap = 2;
  options.mask.causal = true;
  const Tensor<double> cotangent =
      source(s.output(), entries(2 * 2 * 3 * 2, 1.9)).values->get<double>();
  AttendOptions asking = options;
  asking.gradients.grad_output.values = AnyTensor(cotangent);
  const AttendResult result =
      attend(asking, {"grad_q", "grad_k", "grad_v", "grad_past_k", "grad_past_v"});
  const auto check = [&](const std::optional<AnyTensor>& gradient, auto place) {
    const Tensor<double> centre = place(options).values->template cast<double>();
    const Differences differences = central_differences(
        [&](const Tensor<double>& at) {
          AttendOptions moved = options;
          place(moved).values = AnyTensor(at);
          return attend(moved, {}).output->template cast<double>();
        },
        centre, cotangent, 1);
    CHECK(check_gradient("x", gradient->cast<double>(), differences, 1e-8).passed);
    CHECK(differences.gradient.matrix().norm() > .01);
  };
  check(result.gradients.grad_q, [](AttendOptions& o) -> TensorSource& { return o.query_key.q; });
  check(result.gradients.grad_k, [](AttendOptions& o) -> TensorSource& { return o.query_key.k; });
  check(result.gradients.grad_v, [](AttendOptions& o) -> TensorSource& { return o.value.v; });
  check(result.gradients.grad_past_k,
        [](AttendOptions& o) -> TensorSource& { return o.value.past.k; });
}

TEST_CASE("16-bit inputs are rotated and met in float32, and rounded once at the end") {
  AttendOptions options;
  options.sizes.n = 5;
  options.sizes.heads = 3;
  options.sizes.d_k = 6;
  options.positions = {.rope_theta = 10000, .alibi = true};
  options.mask.causal = true;
  options.sizes.dtype = Precision::bfloat16;
  const AttendResult half = attend(options, kAll);
  AttendOptions single = options;
  single.sizes = {};
  single.query_key.q.values = half.q->cast(DType::float32);
  single.query_key.k.values = half.k->cast(DType::float32);
  single.value.v.values = attend(options, {"v"}).v->cast(DType::float32);
  const AttendResult full = attend(single, kAll);
  CHECK(values_of(half.output) == values_of(full.output->cast(DType::bfloat16)));
  CHECK(values_of(half.rotated_q) == values_of(full.rotated_q->cast(DType::bfloat16)));
}

TEST_CASE("matrices that positions do not change are what they are without, for who names them") {
  AttendOptions options;
  options.sizes.n = 3;
  const AttendResult result = attend(options, {"q", "k", "rotated_q", "rotated_k"});
  CHECK(values_of(result.rotated_q) == values_of(result.q));
  CHECK(values_of(result.rotated_k) == values_of(result.k));
}

TEST_CASE("packed heads are rotated as heads that stand apart") {
  AttendOptions options;
  options.positions.rope_theta = 10;
  options.query_key.q = source({3, 8}, entries(24, .3));
  options.query_key.k = source({3, 8}, entries(24, .9));
  options.value.v = source({3, 8}, entries(24, 1.7));
  options.sizes.heads = 2;
  const AttendResult packed = attend(options, {"rotated_q"});
  CHECK(packed.rotated_q->shape() == Shape{3, 8});
  const auto apart = turned(swapped(entries(24, .3), 1, 3, 2, 4), 2, 3, 4, 10,
                            [](std::size_t, std::size_t i) { return static_cast<double>(i); });
  check_close(packed.rotated_q, swapped(apart, 1, 2, 3, 4));
}

TEST_CASE("an offset needs something that is measured from it") {
  AttendOptions options;
  options.sizes.d_k = 4;
  options.mask.offset = 2;
  CHECK(refusal([&] { attend(options, {}); }).find("rope_theta or alibi") != std::string::npos);
  options.positions.alibi = true;
  CHECK(refusal([&] { attend(options, {}); }).empty());
  options.positions = {.rope_theta = 10000};
  CHECK(refusal([&] { attend(options, {}); }).empty());
  options.sizes.d_k = 3;
  const std::string odd = refusal([&] { attend(options, {}); });
  CHECK(odd.find("rope_theta: got d_k = 3") != std::string::npos);
}

TEST_CASE("weights are computed with positions as attend computes them") {
  AttendOptions attending;
  attending.sizes.heads = 2;
  attending.sizes.m = 7;
  attending.positions = {.rope_theta = 100, .alibi = true};
  WeightsOptions weighing;
  weighing.sizes = attending.sizes;
  weighing.positions = attending.positions;
  const AttendResult expected = attend(attending, {"weights"});
  CHECK(values_of(weights(weighing, {}).weights) == values_of(expected.attention.weights));
  weighing.weights = filled({2, 2}, .5);
  weighing.sizes = {};
  CHECK(refusal([&] { weights(weighing, {}); }).find("rope_theta: got 100") != std::string::npos);
}

// ---- layers -------------------------------------------------------------------------------------

MultiheadOptions small_layer() {
  MultiheadOptions options;
  options.layer.d_model = 12;
  options.layer.bias = true;
  options.sizes.dtype = Precision::float64;
  options.sizes.heads = 3;
  options.sizes.kv_heads = 1;
  options.sizes.n = 4;
  options.sizes.batch = 2;
  options.positions = {.rope_theta = 200, .alibi = true};
  return options;
}

TEST_CASE("a layer rotates what it has projected, and its heads are those of attend") {
  MultiheadOptions options = small_layer();
  options.role = Role::decoder;
  const MultiheadResult layer =
      multihead(options, {"q", "k", "v", "rotated_q", "rotated_k", "weights", "heads"});
  AttendOptions attending;
  attending.query_key.q.values = layer.q;
  attending.query_key.k.values = layer.k;
  attending.value.v.values = layer.v;
  attending.positions = options.positions;
  attending.mask.causal = true;
  const AttendResult expected = attend(attending, kAll);
  check_close(layer.rotated_q, values_of(expected.rotated_q), 0);
  check_close(layer.rotated_k, values_of(expected.rotated_k), 0);
  check_close(layer.attention.weights, values_of(expected.attention.weights), 0);
  check_close(layer.heads, values_of(expected.output), 0);
  CHECK(values_of(layer.rotated_q) != values_of(layer.q));
}

TEST_CASE("a layer in steps, each given the present of the last, is the layer on the whole") {
  MultiheadOptions options = small_layer();
  options.role = Role::decoder;
  options.layer.qk_norm = true;
  const MultiheadResult whole = multihead(options, {"x", "present_k"});
  const Tensor<double> x = whole.x->cast<double>(), expected = whole.output->cast<double>();
  MultiheadOptions step = options;
  step.sizes.batch = step.sizes.n = {};
  MultiheadResult result;
  for (Index i = 0; i < 4; ++i) {
    Tensor<double> row({2, 1, 12});
    for (Index b = 0; b < 2; ++b) row.matrix(b) = x.matrix(b).row(i);
    step.inputs.x.values = AnyTensor(row);
    result = multihead(step, {"present_k", "present_v"});
    for (Index b = 0; b < 2; ++b) {
      const auto output = result.output->cast<double>();
      CHECK((output.matrix(b) - expected.matrix(b).row(i)).cwiseAbs().maxCoeff() < 1e-14);
    }
    step.past.k.values = result.present_k;
    step.past.v.values = result.present_v;
  }
  check_close(result.present_k, values_of(whole.present_k), 1e-14);
}

TEST_CASE("a layer without rotation has rotated_q and q alike, for who names them") {
  MultiheadOptions options = small_layer();
  options.positions = {};
  const MultiheadResult layer = multihead(options, {"q", "k", "rotated_q", "rotated_k"});
  CHECK(values_of(layer.rotated_q) == values_of(layer.q));
  CHECK(values_of(layer.rotated_k) == values_of(layer.k));
}

TEST_CASE("a layer whose heads are of odd width is refused before it is applied") {
  MultiheadOptions options = small_layer();
  options.sizes.d_k = 5;
  const std::string text = refusal([&] { multihead(options, {}); });
  CHECK(text.find("rope_theta: got d_k = 5 in [2, 3, 4, 5]") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
