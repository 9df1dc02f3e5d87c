#include "attnlab/experiments/gradcheck.h"

#include <cmath>
#include <stdexcept>

#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

// x -> (x_0 x_1, sin x_0), whose gradient under the cotangent (2, 3) is known.
Tensor<double> product_and_sine(const Tensor<double>& x) {
  return Tensor<double>({2}, {x[0] * x[1], std::sin(x[0])});
}
const Tensor<double> kPoint({2}, {.7, -1.3});
const Tensor<double> kCotangent({2}, {2, 3});
const std::vector<double> kGradient = {2 * -1.3 + 3 * std::cos(.7), 2 * .7};

Differences differences() { return central_differences(product_and_sine, kPoint, kCotangent, 2); }

TEST_CASE("central differences weigh every output with the cotangent") {
  const Differences got = differences();
  for (Index i = 0; i < 2; ++i) {
    CHECK(got.gradient[i] == Approx(kGradient[static_cast<std::size_t>(i)]).epsilon(1e-9));
  }
  CHECK(got.resolution > 1e-12);
  CHECK(got.resolution < 1e-9);
}

TEST_CASE("a right gradient passes, and a wrong one is found and placed") {
  const auto check = [](double first, double second) {
    return check_gradient("x", Tensor<double>({1, 2}, {first, second}), differences(), 1e-8);
  };
  CHECK(check(kGradient[0], kGradient[1]).passed);
  const GradientCheck wrong = check(kGradient[0], kGradient[1] + 1e-6);
  CHECK_FALSE(wrong.passed);
  CHECK(wrong.tensor == "x");
  CHECK(wrong.where == "[0, 1]");
  CHECK(wrong.max_abs_error == Approx(1e-6).epsilon(1e-3));
  CHECK(wrong.norm == Approx(std::hypot(kGradient[0], kGradient[1])));
  CHECK(*wrong.relative_error == Approx(1e-6 / wrong.norm).epsilon(1e-3));
  CHECK_FALSE(check(-kGradient[0], -kGradient[1]).passed);
  CHECK_FALSE(check(0, 0).passed);
  const GradientCheck nan = check(std::nan(""), kGradient[1] + 1);
  CHECK_FALSE(nan.passed);
  CHECK(nan.where == "[0, 0]");
  CHECK(std::isnan(nan.max_abs_error));
  CHECK(check(kGradient[0] + 1, std::nan("")).where == "[0, 1]");
}

TEST_CASE("a gradient of 0 has no relative error, and passes within the resolution only") {
  const Differences nothing{Tensor<double>({2}), 1e-10};
  const GradientCheck zero = check_gradient("x", Tensor<double>({2}), nothing, 1e-8);
  CHECK(zero.passed);
  CHECK_FALSE(zero.relative_error.has_value());
  CHECK(check_gradient("x", Tensor<double>({2}, {1e-11, 0}), nothing, 1e-8).passed);
  CHECK_FALSE(check_gradient("x", Tensor<double>({2}, {1e-9, 0}), nothing, 1e-8).passed);
}

TEST_CASE("a function that bends within the step is extrapolated, and a wrong gradient fails yet") {
  constexpr double kWidth = 2e-3;
  const auto bent = [](const Tensor<double>& x) {
    return Tensor<double>({1}, {std::sin(x[0] / kWidth)});
  };
  const Tensor<double> at({1}, {.1}), one({1}, {1});
  const double slope = std::cos(at[0] / kWidth) / kWidth;
  CHECK_FALSE(
      check_gradient("x", Tensor<double>({1}, {slope}), central_differences(bent, at, one, 1), 1e-8)
          .passed);
  for (const double wrong : {0., 1e-6}) {
    const Tensor<double> gradient({1}, {slope * (1 + wrong)});
    const GradientCheck check =
        check_by_differences(bent, at, one, 1, [&](const Differences& differences) {
          return check_gradient("x", gradient, differences, 1e-8);
        });
    CHECK(check.passed == (wrong == 0));
  }
}

TEST_CASE("differences at what is not finite do not spoil the others") {
  const auto first = [](const Tensor<double>& x) { return Tensor<double>({1}, {3 * x[0]}); };
  const Differences got = central_differences(first, Tensor<double>({2}, {1, std::nan("")}),
                                              Tensor<double>({1}, {1}), 1);
  CHECK(got.gradient[0] == Approx(3));
  CHECK(got.gradient[1] == 0);
}

GradcheckOptions small() {
  GradcheckOptions options;
  options.sizes.batch = 2;
  options.sizes.heads = 4;
  options.sizes.kv_heads = 2;
  options.sizes.n = 3;
  options.sizes.m = 5;
  options.sizes.d_k = 3;
  options.sizes.d_v = 2;
  return options;
}

void check_passes(const GradcheckOptions& options) {
  const GradcheckResult result = gradcheck(options, {});
  REQUIRE(result.rows.size() == 3);
  CHECK(result.passed);
  const std::vector<std::string> names = {"q", "k", "v"};
  for (std::size_t i = 0; i < 3; ++i) {
    INFO(names[i]);
    CHECK(result.rows[i].tensor == names[i]);
    CHECK(*result.rows[i].relative_error < result.tolerance);
    CHECK(result.rows[i].norm > .1);
  }
}

TEST_CASE("the backward pass agrees with differences, whatever the options") {
  GradcheckOptions options = small();
  check_passes(options);
  options.mask.causal = true;
  options.mask.align = Align::bottom_right;
  options.scores.softcap = 1.5;
  options.scores.dropout = .25;
  check_passes(options);
  options.mask.mask = given<double>({1, 5}, {.5, -1, 0, 2, -.3});
  options.mask.key_lengths = given<std::int64_t>({2}, {5, 4});
  options.scores.scale = .9;
  check_passes(options);
  options = small();
  options.sizes.dtype = Precision::float32;
  check_passes(options);
  CHECK(gradcheck(options, {}).tolerance == 1e-5);
  options.sizes.dtype = Precision::bfloat16;
  check_passes(options);
}

TEST_CASE("files and a past are checked in their own form") {
  GradcheckOptions options;
  options.query_key.q = given<double>({1, 4}, {.1, -.4, .9, .3});
  options.query_key.k = given<double>({2, 4}, {.7, .1, -.2, .5, -.6, .8, .4, -.1});
  options.value.v = given<double>({2, 2}, {1, -2, .5, 3});
  options.value.past.k = given<double>({1, 2, 1, 2}, {.2, .3, -.7, 1.1});
  options.value.past.v = given<double>({1, 2, 1, 1}, {4, -1});
  options.sizes.heads = 2;
  check_passes(options);
}

TEST_CASE("a check fails where the precision does not hold the tolerance") {
  GradcheckOptions options = small();
  options.sizes.dtype = Precision::float32;
  options.tolerance = 1e-9;
  const GradcheckResult result = gradcheck(options, {});
  CHECK_FALSE(result.passed);
  CHECK(result.tolerance == 1e-9);
  for (const GradientCheck& row : result.rows) CHECK_FALSE(row.passed);
}

TEST_CASE("a gradient that differences cannot see is said") {
  GradcheckOptions options = small();
  options.sizes.m = 1;  // one key: its weight is 1 whatever the scores
  const GradcheckResult result = gradcheck(options, {});
  CHECK(result.passed);
  CHECK_FALSE(result.rows[0].relative_error.has_value());
  CHECK(mentions(result.notes, "q: differences cannot tell"));
  CHECK_FALSE(mentions(result.notes, "v: differences cannot tell"));
}

TEST_CASE("the threads do not change a check, and the seed draws another cotangent") {
  GradcheckOptions options;
  options.query_key.q = given<double>({2, 2}, {.1, -.4, .9, .3});
  options.query_key.k = given<double>({2, 2}, {.7, .1, -.2, .5});
  options.value.v = given<double>({2, 1}, {1, -2});
  options.run.threads = 1;
  const GradcheckResult one = gradcheck(options, {});
  options.run.threads = 3;
  const GradcheckResult three = gradcheck(options, {});
  CHECK(one.rows[1].max_abs_error == three.rows[1].max_abs_error);
  CHECK(one.rows[1].norm == three.rows[1].norm);
  options.run.seed = 1;
  CHECK(gradcheck(options, {}).rows[1].norm != one.rows[1].norm);
}

// ---- layers -------------------------------------------------------------------------------------

std::string tensors_of(const GradcheckResult& result) {
  std::string names;
  for (const GradientCheck& row : result.rows) names += row.tensor + ' ';
  return names;
}

const GradientCheck& row_of(const GradcheckResult& result, const std::string& tensor) {
  for (const GradientCheck& row : result.rows) {
    if (row.tensor == tensor) return row;
  }
  throw std::out_of_range(tensor);
}

GradcheckOptions small_layer() {
  GradcheckOptions options;
  options.layer.d_model = 4;
  options.layer.bias = true;
  options.sizes.n = 3;
  options.sizes.heads = 2;
  return options;
}

TEST_CASE("a layer is checked where the options name one") {
  GradcheckOptions options = small_layer();
  const GradcheckResult self = gradcheck(options, {});
  CHECK(self.passed);
  CHECK(tensors_of(self) == "x w_q b_q w_k b_k w_v b_v w_o b_o ");
  for (const GradientCheck& row : self.rows) {
    INFO(row.tensor);
    if (row.tensor == "b_k") continue;
    CHECK(*row.relative_error < self.tolerance);
    CHECK(row.norm > .1);
  }
  options.layer.d_model = {};
  options.layer.bias = false;
  options.role = Role::cross;
  CHECK(tensors_of(gradcheck(options, {})) == "x memory w_q w_k w_v w_o ");
  options.role = Role::automatic;
  options.inputs.query = given<double>({1, 2}, {.3, -1});
  options.inputs.key = given<double>({2, 3}, {.5, 1, 2, -.3, .2, .8});
  options.inputs.value = given<double>({2, 1}, {1, -2});
  options.sizes.n = {};
  const GradcheckResult apart = gradcheck(options, {});
  CHECK(apart.passed);
  CHECK(tensors_of(apart) == "query key value w_q w_k w_v w_o ");
}

TEST_CASE("a key bias has no gradient to compare with, and passes for its terms' rounding") {
  GradcheckOptions options = small_layer();
  for (const Precision dtype : {Precision::float64, Precision::float32, Precision::bfloat16}) {
    options.sizes.dtype = dtype;
    const GradcheckResult result = gradcheck(options, {});
    CHECK(result.passed);
    CHECK_FALSE(row_of(result, "b_k").relative_error.has_value());
    CHECK(mentions(result.notes, "b_k: differences cannot tell"));
    CHECK_FALSE(mentions(result.notes, "b_v: differences cannot tell"));
  }
  options.sizes.dtype = Precision::float64;
  options.scores.softcap = .5;
  CHECK(*row_of(gradcheck(options, {}), "b_k").relative_error < 1e-8);
}

// Every mask, the grouped heads, softcap, dropout and biases, each with each, where value heads are
// of another width.
TEST_CASE("a layer's backward pass agrees with differences under every combination of options") {
  for (int on = 0; on < 256; ++on) {
    const auto with = [on](int bit) { return (on >> bit & 1) != 0; };
    GradcheckOptions options;
    options.sizes.batch = 2;
    options.sizes.n = 3;
    options.layer.d_model = 4;
    options.sizes.heads = 2;
    options.sizes.d_k = 2;
    options.sizes.d_v = 3;
    options.run.seed = static_cast<std::uint64_t>(on);
    options.layer.bias = with(0);
    if (with(1)) options.sizes.kv_heads = 1;
    if (with(2)) options.scores.softcap = 1.5;
    if (with(3)) options.scores.dropout = .25;
    options.role = with(7) ? Role::cross : with(4) ? Role::decoder : Role::encoder;
    if (with(7)) options.sizes.m = 4;
    if (with(7) && with(4)) options.mask.causal = true;
    if (with(5)) {
      options.mask.mask = with(7)
                              ? given<double>({3, 4}, {.5, -1, 0, 2, -.3, .2, 1, -2, 0, 3, 1, 1})
                              : given<double>({3, 3}, {.5, -1, 0, 2, -.3, .2, 1, -2, 0});
    }
    if (with(6)) options.mask.key_lengths = given<std::int64_t>({2}, {3, 2});
    const GradcheckResult result = gradcheck(options, {});
    INFO("options " << on);
    CHECK(result.passed);
    CHECK(result.rows.size() == (with(7) ? 6u : 5u) + (with(0) ? 4u : 0u));
    CHECK(row_of(result, "w_q").norm > 1e-3);
  }
}

TEST_CASE("a layer's check fails where the precision does not hold the tolerance") {
  GradcheckOptions options = small_layer();
  options.sizes.dtype = Precision::float32;
  CHECK(gradcheck(options, {}).tolerance == 1e-5);
  options.tolerance = 1e-10;
  const GradcheckResult result = gradcheck(options, {});
  CHECK_FALSE(result.passed);
  for (const GradientCheck& row : result.rows) CHECK_FALSE(row.passed);
}

TEST_CASE("a check is of attention or of a layer, not of both") {
  GradcheckOptions options = small_layer();
  options.query_key.q = filled({2, 2}, 1);
  CHECK(refusal([&] { gradcheck(options, {}); }).find("q: got") != std::string::npos);
  options.query_key = {};
  options.value.v = filled({2, 2}, 1);
  CHECK(refusal([&] { gradcheck(options, {}); }).find("v: got") != std::string::npos);
  options = small_layer();
  options.layer.d_model = {};
  const std::string text = refusal([&] { gradcheck(options, {}); });
  CHECK(text.find("bias: got true") != std::string::npos);
  CHECK(text.find("d_model") != std::string::npos);
}

TEST_CASE("the threads do not change a layer's check") {
  GradcheckOptions options = small_layer();
  options.run.threads = 1;
  const GradcheckResult one = gradcheck(options, {});
  options.run.threads = 3;
  const GradcheckResult three = gradcheck(options, {});
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    CHECK(one.rows[i].max_abs_error == three.rows[i].max_abs_error);
    CHECK(one.rows[i].norm == three.rows[i].norm);
  }
}

TEST_CASE("terms that cancel are allowed their rounding") {
  const Differences nothing{Tensor<double>({2}), 1e-12};
  const Tensor<double> rounding({2}, {1e-9, 0});
  CHECK_FALSE(check_gradient("x", rounding, nothing, 1e-8).passed);
  CHECK_FALSE(check_gradient("x", rounding, nothing, 1e-8, .05).passed);
  CHECK(check_gradient("x", rounding, nothing, 1e-8, .2).passed);
}

}  // namespace
}  // namespace attnlab
