#include "attnlab/experiments/gradcheck.h"

#include <cmath>

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
  options.value.past_k = given<double>({1, 2, 1, 2}, {.2, .3, -.7, 1.1});
  options.value.past_v = given<double>({1, 2, 1, 1}, {4, -1});
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

}  // namespace
}  // namespace attnlab
