#include "attnlab/experiments/softmax.h"

#include <cmath>
#include <limits>

#include "catch.h"
#include "inputs.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

SoftmaxOptions of(std::vector<double> values) {
  SoftmaxOptions options;
  options.values = std::move(values);
  return options;
}

const SoftmaxOptions& three_rows() {
  static const SoftmaxOptions options = [] {
    SoftmaxOptions rows;
    rows.x = given<double>({3, 3}, {1, 2, 3, 10, 20, 30, 100, 200, 300});
    return rows;
  }();
  return options;
}

SoftmaxOptions with(SoftmaxOptions options, Precision dtype) {
  options.dtype = dtype;
  return options;
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                 double relative = 1e-14) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i] == Approx(expected[i]).epsilon(relative).margin(0));
  }
}

TEST_CASE("one row of numbers gives its softmax and one number for each metric") {
  const SoftmaxResult result = softmax(of({1, 2, 3}), {"softmax", "log_softmax"});
  CHECK(result.softmax->dtype() == DType::float64);
  CHECK(result.softmax->shape() == Shape{3});
  check_close(values_of(result.softmax),
              {0.09003057317038046, 0.24472847105479765, 0.66524095577482189});
  check_close(values_of(result.log_softmax),
              {-2.4076059644443803, -1.4076059644443803, -0.4076059644443803});
  CHECK(result.entropy->shape() == Shape{});
  check_close(values_of(result.entropy), {0.83239558183993887});
  check_close(values_of(result.trace), {0.4894569421095953});
  check_close(values_of(result.frobenius), {0.38938977465759938});
  check_close(values_of(result.lambda_max), {0.37090364198445830});
  CHECK_FALSE(result.jacobian);
  CHECK_FALSE(result.finite_difference_error);
  CHECK(result.rows.empty());
  CHECK(result.notes.empty());
}

TEST_CASE("the example rows keep their known digits in float64 and float32") {
  const SoftmaxResult wide = softmax(three_rows(), {"softmax"});
  CHECK(wide.softmax->shape() == Shape{3, 3});
  check_close(values_of(wide.softmax),
              {0.09003057317038046, 0.24472847105479765, 0.66524095577482189, 2.0610600462090623e-9,
               4.5397868608866661e-5, 0.99995460007033109, 1.3838965267367375e-87,
               3.720075976020836e-44, 1});
  CHECK(wide.entropy->shape() == Shape{3});
  check_close(values_of(wide.entropy),
              {0.832395581839939, 0.000499420867566504, 3.75727673578104e-42}, 2e-14);
  check_close(values_of(wide.frobenius), {0.389389774658, 9.07926457154e-5, 7.44015195204e-44},
              2e-12);
  const SoftmaxResult narrow = softmax(with(three_rows(), Precision::float32), {"softmax"});
  CHECK(narrow.softmax->dtype() == DType::float32);
  // Two units in the last place.
  check_close(values_of(narrow.softmax),
              {0.0900305733, 0.2447284611, 0.6652409434, 2.06105999e-9, 4.5397861e-5, 0.9999545813,
               0, 3.783505853677006e-44, 1},
              2.4e-7);
  check_close(values_of(narrow.frobenius), {0.389389774658, 9.07926457154e-5, 7.5670117e-44}, 3e-7);
}

TEST_CASE("two methods give a row each, side by side") {
  SoftmaxOptions options = with(three_rows(), Precision::float32);
  options.method = {SoftmaxMethod::stable, SoftmaxMethod::naive};
  const SoftmaxResult result = softmax(options, {"softmax"});
  CHECK_FALSE(result.softmax);
  CHECK_FALSE(result.entropy);
  REQUIRE(result.rows.size() == 6);
  CHECK(result.rows[0].method == "stable");
  CHECK(result.rows[1].method == "naive");
  CHECK(result.rows[4].row == 2);
  CHECK(result.rows[4].softmax == std::vector<double>{0, 27 * 0x1p-149, 1});
  CHECK(result.rows[4].non_finite == 0);
  CHECK(result.rows[4].sum == 1);
  CHECK(result.rows[5].row == 2);
  CHECK(result.rows[5].non_finite == 3);
  CHECK(std::isnan(result.rows[5].sum));
  CHECK(std::isnan(result.rows[5].entropy));
  CHECK(std::isnan(result.rows[5].lambda_max));
  // Where nothing overflows they agree.
  check_close(result.rows[3].softmax, result.rows[2].softmax, 3e-7);
  CHECK(result.rows[3].entropy == Approx(result.rows[2].entropy).epsilon(1e-5));
  for (const std::size_t i : {2u, 3u}) {
    CHECK(result.rows[i].trace == Approx(9.07957372177333e-5).epsilon(1e-6));
  }
  CHECK(result.rows[3].frobenius == Approx(9.07926457154e-5).epsilon(1e-6));
  CHECK(result.notes == std::vector<std::string>{
                            "naive float32: 3 of 3 values are NaN: exp overflows above 88.72"});
}

TEST_CASE("the naive method in float64 holds until 709.78") {
  SoftmaxOptions options = three_rows();
  options.method = {SoftmaxMethod::naive};
  const SoftmaxResult result = softmax(options, {"softmax"});
  CHECK(result.notes.empty());
  check_close(values_of(result.softmax), values_of(softmax(three_rows(), {"softmax"}).softmax));
  options = of({1000, 2000, 3000});
  options.method = {SoftmaxMethod::naive};
  CHECK(mentions(softmax(options, {}).notes, "exp overflows above 709.78"));
}

TEST_CASE("the Jacobian comes when the options or the caller ask for it") {
  SoftmaxOptions options = of({1, 2, 3});
  const SoftmaxResult wanted = softmax(options, {"jacobian"});
  options.jacobian = true;
  const SoftmaxResult result = softmax(options, {});
  CHECK(result.jacobian->shape() == Shape{3, 3});
  check_close(values_of(result.jacobian),
              {0.08192506906, -0.02203304452, -0.05989202454, -0.02203304452, 0.1848364465,
               -0.162803402, -0.05989202454, -0.162803402, 0.2226954265},
              1e-9);
  CHECK(values_of(wanted.jacobian) == values_of(result.jacobian));
  CHECK_FALSE(wanted.softmax);
  CHECK(*result.finite_difference_error < 1e-10);
  CHECK(*result.finite_difference_error > 0);
  const SoftmaxResult saturated = softmax(three_rows(), {"jacobian"});
  CHECK(saturated.jacobian->shape() == Shape{3, 3, 3});
  CHECK(saturated.jacobian->at(26) == Approx(3.720075976020836e-44).epsilon(1e-14).margin(0));
  CHECK(*saturated.finite_difference_error < 1e-10);
  // In float32 the Jacobian is as far from them as its rounding.
  const double rounding = *softmax(with(options, Precision::float32), {}).finite_difference_error;
  CHECK(rounding > 1e-10);
  CHECK(rounding < 5e-8);
}

TEST_CASE("the derivative's two cases make up the Jacobian") {
  const SoftmaxResult result =
      softmax(three_rows(), {"jacobian", "jacobian_diagonal", "jacobian_off_diagonal"});
  CHECK(result.jacobian_diagonal->shape() == Shape{3, 3});
  CHECK(result.jacobian_off_diagonal->shape() == Shape{3, 3, 3});
  for (Index row = 0; row < 3; ++row) {
    for (Index i = 0; i < 3; ++i) {
      for (Index j = 0; j < 3; ++j) {
        const Index place = (row * 3 + i) * 3 + j;
        CHECK(result.jacobian->at(place) == (i == j ? result.jacobian_diagonal->at(row * 3 + i)
                                                    : result.jacobian_off_diagonal->at(place)));
        if (i == j) CHECK(result.jacobian_off_diagonal->at(place) == 0);
      }
    }
  }
  CHECK_FALSE(softmax(three_rows(), {"jacobian_diagonal"}).jacobian);
}

TEST_CASE("the steps on the way multiply out to the softmax") {
  for (const SoftmaxMethod method : {SoftmaxMethod::stable, SoftmaxMethod::naive}) {
    SoftmaxOptions options = of({1, 2, 4});
    options.method = {method};
    options.temperature = 2;
    const SoftmaxResult result =
        softmax(options, {"scaled", "exponentials", "sums", "softmax", "log_softmax"});
    CHECK(values_of(result.scaled) == (method == SoftmaxMethod::stable
                                           ? std::vector<double>{-1.5, -1, 0}
                                           : std::vector<double>{0.5, 1, 2}));
    CHECK(result.sums->shape() == Shape{});
    for (Index i = 0; i < 3; ++i) {
      CHECK(result.exponentials->at(i) == Approx(std::exp(result.scaled->at(i))));
      CHECK(result.softmax->at(i) ==
            Approx(result.exponentials->at(i) / result.sums->at(0)).epsilon(1e-15));
      CHECK(result.log_softmax->at(i) == Approx(std::log(result.softmax->at(i))).epsilon(1e-14));
    }
  }
}

TEST_CASE("the temperature divides the logits") {
  SoftmaxOptions options = of({1, 2, 3});
  options.temperature = 0.1;
  check_close(values_of(softmax(options, {"softmax"}).softmax),
              values_of(softmax(of({10, 20, 30}), {"softmax"}).softmax), 1e-14);
  CHECK(softmax(options, {}).entropy->at(0) ==
        Approx(softmax(of({10, 20, 30}), {}).entropy->at(0)).epsilon(1e-13));
  options = with(of({1e10, 0}), Precision::float32);
  options.temperature = 0.3;
  CHECK(values_of(softmax(options, {"softmax"}).softmax) == std::vector<double>{1, 0});
  options = of({1, 2, 3});
  options.temperature = 0.1;
  options.method = {SoftmaxMethod::stable, SoftmaxMethod::naive};
  for (const SoftmaxMethodRow& row : softmax(options, {}).rows) {
    check_close(row.softmax, values_of(softmax(of({10, 20, 30}), {"softmax"}).softmax), 1e-14);
  }
}

TEST_CASE("only the matrices that are asked for are kept") {
  std::vector<std::string> kept;
  const SoftmaxResult result = softmax(of({1, 2, 3}), {"sums"});
  for (const ResultRef& column : result_of(result)) {
    if (column.matrix() != nullptr) kept.emplace_back(column.name);
  }
  CHECK(kept == std::vector<std::string>{"sums", "entropy", "trace", "frobenius", "lambda_max"});
}

TEST_CASE("there is nothing to hold the Jacobian of NaN against") {
  CHECK_FALSE(softmax(of({1, kNotANumber}), {"jacobian"}).finite_difference_error);
}

TEST_CASE("a temperature that is not above 0 is refused by name") {
  for (const double bad : {0.0, -1.0, kNotANumber, kInfinity}) {
    SoftmaxOptions options = of({1, 2});
    options.temperature = bad;
    CHECK(refusal([&] { softmax(options, {}); }).rfind("temperature: got ", 0) == 0);
  }
}

TEST_CASE("the dtype is that of x unless it is chosen") {
  SoftmaxOptions options;
  options.x = given<float>({2}, {1, 2});
  CHECK(softmax(options, {"softmax"}).softmax->dtype() == DType::float32);
  options.x = given<std::int32_t>({2}, {1, 2});
  CHECK(softmax(options, {"softmax"}).softmax->dtype() == DType::float64);
  options.x = given<Float16>({2}, {Float16(1), Float16(2)});
  CHECK(softmax(options, {"softmax"}).softmax->dtype() == DType::float16);
  for (const Precision dtype : {Precision::float16, Precision::bfloat16}) {
    // Computed in float32 and rounded once.
    const SoftmaxResult result =
        softmax(with(of({1, 2, 3}), dtype), {"softmax", "jacobian", "log_softmax", "scaled"});
    const SoftmaxResult wide =
        softmax(with(of({1, 2, 3}), Precision::float32), {"softmax", "jacobian", "log_softmax"});
    const DType narrow = result.softmax->dtype();
    CHECK(narrow == (dtype == Precision::float16 ? DType::float16 : DType::bfloat16));
    CHECK(values_of(result.softmax) == values_of(wide.softmax->cast(narrow)));
    CHECK(values_of(result.jacobian) == values_of(wide.jacobian->cast(narrow)));
    CHECK(values_of(result.log_softmax) == values_of(wide.log_softmax->cast(narrow)));
    CHECK(values_of(result.scaled) == std::vector<double>{-2, -1, 0});
    CHECK(values_of(result.entropy) == values_of(wide.entropy));
  }
}

TEST_CASE("numbers beyond the chosen dtype are said to become infinite") {
  const SoftmaxResult result = softmax(with(of({1, 1e39}), Precision::float32), {"softmax"});
  CHECK(mentions(result.notes, "1 value of x beyond the range of float32"));
  CHECK(mentions(result.notes, "stable float32: 1 row with NaN or +infinity: softmax NaN"));
  CHECK(std::isnan(result.softmax->at(0)));
}

TEST_CASE("rows do not touch each other, and odd ones are noted") {
  SoftmaxOptions options;
  options.x = given<double>({3, 3}, {kNotANumber, kInfinity, -kInfinity, 1, 2, -kInfinity,
                                     -kInfinity, -kInfinity, -kInfinity});
  options.jacobian = true;
  const SoftmaxResult result = softmax(options, {"softmax"});
  for (Index i = 0; i < 3; ++i) CHECK(std::isnan(result.softmax->at(i)));
  CHECK(result.softmax->at(4) == Approx(1 / (1 + std::exp(-1.0))));
  CHECK(result.softmax->at(5) == 0);
  for (Index i = 6; i < 9; ++i) CHECK(result.softmax->at(i) == 0);
  CHECK(std::isnan(result.entropy->at(0)));
  CHECK(result.entropy->at(2) == 0);
  CHECK(std::isnan(result.jacobian->at(0)));
  CHECK(*result.finite_difference_error < 1e-10);
  CHECK(result.notes.size() == 2);
  CHECK(mentions(result.notes, "1 row without a value above -infinity: softmax 0"));
  CHECK(mentions(result.notes, "1 row with NaN or +infinity: softmax NaN"));
}

TEST_CASE("the naive method says how it failed") {
  SoftmaxOptions options = with(of({88.5, 88.5, 88.5}), Precision::float32);
  options.method = {SoftmaxMethod::naive};
  SoftmaxResult result = softmax(options, {"softmax"});
  CHECK(values_of(result.softmax) == std::vector<double>{0, 0, 0});
  CHECK(mentions(result.notes, "1 row whose sum of exponentials overflows: every weight is 0"));
  options.values = {-200, -300};
  result = softmax(options, {"softmax"});
  CHECK(std::isnan(result.softmax->at(0)));
  CHECK(mentions(result.notes, "1 row whose exponentials are all 0, as they are below -103.97"));
  options.values = {0, 100};
  result = softmax(options, {"softmax"});
  CHECK(result.softmax->at(0) == 0);
  CHECK(std::isnan(result.softmax->at(1)));
  CHECK(mentions(result.notes, "naive float32: 1 of 2 values are NaN"));
  options.values = {-kInfinity};
  CHECK(mentions(softmax(options, {}).notes, "softmax NaN (0/0)"));
  options = with(of({12, 0}), Precision::float16);
  options.method = {SoftmaxMethod::naive};
  CHECK(mentions(softmax(options, {}).notes,
                 "naive float16: 1 of 2 values are NaN: exp overflows "
                 "above 11.09"));
}

TEST_CASE("numbers or a tensor are needed, not both") {
  const std::string none = refusal([] { softmax({}, {}); });
  CHECK(none.find("values") == 0);
  CHECK(none.find("a tensor x") != std::string::npos);
  SoftmaxOptions both = of({1});
  both.x = given<double>({1}, {1});
  CHECK(refusal([&] { softmax(both, {}); }) ==
        "values: give either numbers or a tensor x, not both");
}

TEST_CASE("shapes and methods that make no sense are refused by name") {
  SoftmaxOptions options;
  options.x = given<double>(Shape{}, {1});
  CHECK(refusal([&] { softmax(options, {}); }) == "x: got [], need at least one axis");
  options.x = filled({1, 1, 1, 2}, 0);
  CHECK(refusal([&] { softmax(options, {}); }).empty());
  CHECK(refusal([&] { softmax(options, {"jacobian"}); }).rfind("x: got [1, 1, 1, 2], need", 0) ==
        0);
  options = of({1});
  options.method = {};
  CHECK(refusal([&] { softmax(options, {}); }).rfind("method: ", 0) == 0);
  options.method = {SoftmaxMethod::naive, SoftmaxMethod::naive};
  CHECK(refusal([&] { softmax(options, {}); }).rfind("method: ", 0) == 0);
  options.method = {SoftmaxMethod::stable, SoftmaxMethod::naive, SoftmaxMethod::naive};
  CHECK(refusal([&] { softmax(options, {}); }).rfind("method: ", 0) == 0);
  options.method = {SoftmaxMethod::stable, SoftmaxMethod::naive};
  options.jacobian = true;
  CHECK(refusal([&] { softmax(options, {}); }).rfind("jacobian: ", 0) == 0);
}

TEST_CASE("a Jacobian beyond the memory there is is refused with the estimate") {
  SoftmaxOptions options;
  options.x = filled({4000000}, 0);
  const std::string message = refusal([&] { softmax(options, {"jacobian"}); });
  // 16e12 entries of 8 bytes, kept once and twice in work.
  CHECK(message.rfind("jacobian: needs 384 TB of memory", 0) == 0);
}

TEST_CASE("rows of every rank and rows of no entries keep their shape") {
  SoftmaxOptions options;
  options.x = filled({2, 3, 4, 5}, 1);
  SoftmaxResult result = softmax(options, {"softmax", "sums"});
  CHECK(result.softmax->shape() == Shape{2, 3, 4, 5});
  CHECK(result.softmax->at(119) == 0.2);
  CHECK(result.sums->shape() == Shape{2, 3, 4});
  CHECK(result.lambda_max->shape() == Shape{2, 3, 4});
  CHECK(result.lambda_max->at(23) == 0.2);
  options.x = filled({0, 3}, 1);
  CHECK(softmax(options, {"softmax", "jacobian"}).jacobian->shape() == Shape{0, 3, 3});
  options.x = filled({2, 0}, 1);
  result = softmax(options, {"softmax", "jacobian"});
  CHECK(result.softmax->shape() == Shape{2, 0});
  CHECK(result.jacobian->shape() == Shape{2, 0, 0});
  CHECK(values_of(result.entropy) == std::vector<double>{0, 0});
}

TEST_CASE("the result does not depend on the threads") {
  SoftmaxOptions options;
  Tensor<double> x({64, 9});
  for (Index i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i)) * 5;
  options.x.values = x;
  options.run.threads = 1;
  const SoftmaxResult one = softmax(options, {"softmax", "jacobian"});
  options.run.threads = 5;
  const SoftmaxResult five = softmax(options, {"softmax", "jacobian"});
  CHECK(values_of(one.softmax) == values_of(five.softmax));
  CHECK(values_of(one.jacobian) == values_of(five.jacobian));
  CHECK(values_of(one.lambda_max) == values_of(five.lambda_max));
  CHECK(one.finite_difference_error == five.finite_difference_error);
}

TEST_CASE("options and results are described for the command line") {
  SoftmaxOptions options;
  std::vector<std::string> names;
  for (const OptionRef& option : options_of(options)) names.emplace_back(option.name);
  CHECK(names == std::vector<std::string>{"values", "x", "temperature", "method", "jacobian",
                                          "dtype", "seed", "threads"});
  CHECK(options_of(options)[0].positional);
  CHECK(options_of(options)[0].non_finite);
  std::vector<std::string> shown;
  for (const ResultRef& column : columns_of<SoftmaxResult>()) {
    if (column.shown) shown.emplace_back(column.name);
  }
  CHECK(shown ==
        std::vector<std::string>{"softmax", "entropy", "trace", "frobenius", "lambda_max"});
}

}  // namespace
}  // namespace attnlab
