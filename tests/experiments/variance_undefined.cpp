#include <cmath>

#include "attnlab/experiments/variance.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "experiments/plain_scores.h"

namespace attnlab {
namespace {

TEST_CASE("where no interval is valid there are robust figures instead") {
  for (const double nu : {3.0, 4.0}) {
    VarianceOptions options = sized({2, 9}, 500);
    options.entries = {Distribution::student_t, nu, 1};
    const VarianceResult result = variance(options, {});
    for (std::size_t p = 0; p < 2; ++p) {
      const std::vector<double> scores = plain_scores(options, p);
      const double median = plain_quantile(scores, 0.5);
      std::vector<double> deviations;
      for (const double score : scores) deviations.push_back(std::abs(score - median));
      for (std::size_t s = 0; s < 2; ++s) {
        const VarianceRow& row = result.rows[2 * p + s];
        const double d = static_cast<double>(row.d_k);
        const double factor = s == 0 ? 1 : 1 / std::sqrt(d);
        CHECK_FALSE(row.std_error);
        CHECK_FALSE(row.ci_low);
        CHECK_FALSE(row.ci_high);
        CHECK_FALSE(row.z);
        CHECK_FALSE(row.theory_excess_kurtosis);
        CHECK(row.theory_variance.value() == Approx(s == 0 ? d : 1));
        CHECK(row.interquartile_range.value() ==
              Approx(factor * (plain_quantile(scores, 0.75) - plain_quantile(scores, 0.25)))
                  .epsilon(1e-12));
        CHECK(row.median_absolute_deviation.value() ==
              Approx(factor * plain_quantile(deviations, 0.5)).epsilon(1e-12));
      }
    }
    CHECK_FALSE(result.fit);
    CHECK(mentions(result.notes, "interval not valid: the fourth moment of the score is infinite"));
    CHECK_FALSE(mentions(result.notes, "infinite or undefined"));
  }
}

TEST_CASE("of entries without a variance the theory has none") {
  VarianceOptions options = sized({4}, 100);
  options.entries = {Distribution::student_t, 2.0, 1};
  const VarianceResult result = variance(options, {});
  const VarianceRow& row = result.rows[0];
  CHECK_FALSE(row.theory_variance);
  CHECK_FALSE(row.ratio);
  CHECK_FALSE(row.alpha);
  CHECK_FALSE(row.std_error);
  CHECK(row.interquartile_range);
  CHECK(mentions(result.notes, "the variance of the score is infinite or undefined"));
}

TEST_CASE("bounded scores have an interval whatever their entries") {
  VarianceOptions options = sized({4}, 100);
  options.entries = {Distribution::student_t, 2.0, 1};
  options.scaling = {"qk_norm:2", "softcap:3"};
  const VarianceResult result = variance(options, {});
  for (const VarianceRow& row : result.rows) {
    CHECK(row.ci_low);
    CHECK_FALSE(row.interquartile_range);
  }
  CHECK(result.notes.empty());
  options.scaling.push_back("none");
  const VarianceResult mixed = variance(options, {});
  CHECK(mixed.rows[0].ci_low == result.rows[0].ci_low);
  CHECK(mixed.rows[2].interquartile_range);
  CHECK(mentions(mixed.notes, "the variance of the score is infinite or undefined"));
}

TEST_CASE("keys that hold a part of q need its eighth moment") {
  VarianceOptions options = sized({4}, 100);
  options.entries = {Distribution::student_t, 7.0, 1};
  CHECK(variance(options, {}).rows[0].ci_low);
  options.dependence.rho_qk = 0.5;
  const VarianceRow row = variance(options, {}).rows[0];
  CHECK_FALSE(row.ci_low);
  CHECK(row.interquartile_range);
}

TEST_CASE("a finite fourth moment has an interval and no robust figures") {
  VarianceOptions options = sized({4}, 100);
  options.entries = {Distribution::student_t, 4.5, 1};
  const VarianceRow row = variance(options, {}).rows[0];
  CHECK(row.ci_low);
  CHECK_FALSE(row.interquartile_range);
  CHECK_FALSE(row.median_absolute_deviation);
}

TEST_CASE("vectors of length 0 have no direction and a score of 0") {
  VarianceOptions options = sized({4}, 100);
  options.entries.sigma = 1e-46;  // below the least float32
  options.scaling = {"qk_norm:2"};
  const VarianceRow row = variance(options, {}).rows.at(0);
  CHECK(row.mean == 0);
  CHECK(row.variance == 0);
}

TEST_CASE("one entry has no other to be correlated with") {
  VarianceOptions options = sized({1}, 100);
  options.entries.distribution = Distribution::laplace;
  options.dependence.rho_q = options.dependence.rho_k = 0.25;
  CHECK(variance(options, {}).rows.at(0).theory_excess_kurtosis.value() == Approx(33));
}

}  // namespace
}  // namespace attnlab
