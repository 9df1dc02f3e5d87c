#include <cmath>

#include "attnlab/experiments/attend.h"
#include "attnlab/experiments/compare.h"
#include "attnlab/experiments/weights.h"
#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

TEST_CASE("a row of weights is told by its maximum, entropy and effective keys") {
  WeightsOptions options;
  options.weights = given<double>({2, 4}, {.25, .25, .25, .25, 0, 2, 0, 2});
  options.top = 2;
  const WeightsResult result = weights(options, {});
  REQUIRE(result.rows.size() == 2);
  CHECK(result.rows[0].max == .25);
  CHECK(*result.rows[0].entropy == Approx(std::log(4)));
  CHECK(*result.rows[0].effective_keys == Approx(4));
  CHECK(result.rows[0].top_keys == std::vector<Index>{0, 1});
  CHECK(result.rows[1].sum == 4);
  CHECK(*result.rows[1].entropy == Approx(std::log(2)));
  CHECK(result.rows[1].top_keys == std::vector<Index>{1, 3});
  CHECK_FALSE(result.rows[0].head.has_value());
}

TEST_CASE("entropy is undefined where a row is no distribution") {
  WeightsOptions options;
  options.weights = given<double>({3, 2}, {-1, 2, 0, 0, std::nan(""), 1});
  options.top = 1;
  const WeightsResult result = weights(options, {});
  for (const WeightsRow& row : result.rows) CHECK_FALSE(row.entropy.has_value());
  CHECK(result.rows[2].top_keys == std::vector<Index>{1});
}

TEST_CASE("the largest weight of a row with NaN is NaN, wherever it stands") {
  WeightsOptions options;
  const double nan = std::nan("");
  options.weights = given<double>({4, 3}, {nan, 1, 2, 1, nan, 2, 1, 2, nan, 1, 2, 0});
  const WeightsResult result = weights(options, {});
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(result.rows[i].max));
  CHECK(result.rows[3].max == 2);
}

TEST_CASE("a head or the average of the heads is chosen") {
  WeightsOptions options;
  options.weights = given<double>({2, 1, 2}, {1, 0, 0, 1});
  CHECK(weights(options, {}).rows.size() == 2);
  options.head = 1;
  CHECK(values_of(weights(options, {}).weights) == std::vector<double>{0, 1});
  options.average = true;
  CHECK(refusal([&] { weights(options, {}); }).find("head") != std::string::npos);
  options.head = {};
  CHECK(values_of(weights(options, {}).weights) == std::vector<double>{.5, .5});
  options.average = false;
  options.head = 2;
  CHECK(refusal([&] { weights(options, {}); }).find("head: got 2, there are 2") !=
        std::string::npos);
}

TEST_CASE("weights are computed as attend and multihead compute them") {
  WeightsOptions options;
  options.sizes.n = 3;
  options.mask.causal = true;
  AttendOptions attending;
  attending.sizes.n = 3;
  attending.mask.causal = true;
  CHECK(values_of(weights(options, {}).weights) ==
        values_of(attend(attending, {"weights"}).attention.weights));
  options.layer.d_model = 8;
  MultiheadOptions layer;
  layer.sizes.n = 3;
  layer.layer.d_model = 8;
  layer.mask.causal = true;
  CHECK(values_of(weights(options, {}).weights) ==
        values_of(multihead(layer, {"weights"}).attention.weights));
  options.projections = true;
  CHECK(refusal([&] { weights(options, {}); }).find("causal: got true") != std::string::npos);
  options.mask.causal = {};
  const WeightsResult projections = weights(options, {});
  CHECK(projections.w_o->shape() == Shape{8, 8});
  CHECK_FALSE(projections.weights.has_value());
  options.weights = filled({2, 2}, .5);
  CHECK(refusal([&] { weights(options, {}); }).find("either a weight matrix") != std::string::npos);
}

TEST_CASE("two tensors are compared element by element") {
  CompareOptions options;
  options.a = given<double>({2, 2}, {1, 2, 3, 4.5});
  options.b = given<double>({2, 2}, {1, 2, 3, 4});
  CompareResult result = compare(options, {});
  CHECK_FALSE(result.equal);
  REQUIRE(result.rows.size() == 1);
  CHECK(*result.rows[0].max_abs_error == .5);
  CHECK(*result.rows[0].max_rel_error == .125);
  CHECK(*result.rows[0].relative_norm == Approx(.5 / std::sqrt(30)));
  CHECK(result.rows[0].where == "[1, 1]");
  CHECK(result.rows[0].apart == 1);
  options.atol = .5;
  CHECK(compare(options, {}).equal);
  options.b = given<double>({2, 2}, {1, 2, 3, std::nan("")});
  result = compare(options, {});
  CHECK_FALSE(result.equal);
  CHECK(result.rows[0].where == "[1, 1]");
  options.a = options.b;
  CHECK(compare(options, {}).equal);
  options.a = filled({2, 3}, 1);
  CHECK(refusal([&] { compare(options, {}); }).find("[2, 3]") != std::string::npos);
}

TEST_CASE("the tolerance follows the narrower dtype") {
  CompareOptions options;
  options.a = given<float>({1}, {1.0f});
  options.b = given<double>({1}, {1.0000005});
  CHECK(compare(options, {}).equal);
  options.a = given<double>({1}, {1.0});
  CHECK_FALSE(compare(options, {}).equal);
}

}  // namespace
}  // namespace attnlab
