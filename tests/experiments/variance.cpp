#include "attnlab/experiments/variance.h"

#include <cmath>

#include "catch.h"
#include "experiments/inputs.h"
#include "experiments/plain_scores.h"

namespace attnlab {
namespace {

TEST_CASE("the variance of q.k is that of a plain loop over the same draws") {
  for (const Distribution distribution :
       {Distribution::normal, Distribution::uniform, Distribution::rademacher,
        Distribution::laplace, Distribution::student_t}) {
    VarianceOptions options = sized({1, 5, 40}, 300);
    options.entries = {distribution, std::nullopt, 1.5};
    options.dependence.mean_q = 0.5;
    options.dependence.mean_k = -2;
    options.sweep.run.seed = 7;
    const VarianceResult result = variance(options, {});
    REQUIRE(result.rows.size() == 6);
    for (std::size_t p = 0; p < 3; ++p) {
      INFO(static_cast<int>(distribution) << " d_k " << options.d_k[p]);
      const std::vector<double> scores = plain_scores(options, p);
      const VarianceRow& raw = result.rows[2 * p];
      CHECK(raw.d_k == options.d_k[p]);
      CHECK(raw.samples == 300);
      CHECK(raw.scaling == "none");
      CHECK(raw.variance == Approx(plain_variance(scores)).epsilon(1e-12));
      double mean = 0;
      for (const double score : scores) mean += score / 300;
      CHECK(raw.mean == Approx(mean).epsilon(1e-12).margin(1e-12));
      const double m2 = central(scores, 2, 300), m4 = central(scores, 4, 300);
      CHECK(raw.excess_kurtosis.value() == Approx(m4 / (m2 * m2) - 3).epsilon(1e-10));
    }
  }
}

TEST_CASE("scaled columns are the unscaled ones over the divisor") {
  VarianceOptions options = sized({4, 64}, 500);
  options.entries.sigma = 2;
  options.dependence.mean_q = 1;
  options.dependence.mean_k = 1;
  options.scaling = {"none", "inv_sqrt_d", "inv_d", "inv_sqrt_d_sigma2", "0.5"};
  const VarianceResult result = variance(options, {});
  REQUIRE(result.rows.size() == 10);
  for (std::size_t p = 0; p < 2; ++p) {
    const VarianceRow& raw = result.rows[5 * p];
    const double d = static_cast<double>(raw.d_k);
    const std::vector<double> divisors = {1, d, d * d, 16 * d, 4};
    for (std::size_t s = 0; s < 5; ++s) {
      const VarianceRow& row = result.rows[5 * p + s];
      INFO(row.scaling << " at d_k " << d);
      const double divisor = divisors[s];
      CHECK(row.scaling == options.scaling[s]);
      CHECK(row.variance == Approx(raw.variance / divisor).epsilon(1e-14));
      CHECK(row.mean == Approx(raw.mean / std::sqrt(divisor)).epsilon(1e-14));
      CHECK(row.std_error.value() == Approx(*raw.std_error / divisor).epsilon(1e-14));
      CHECK(row.ci_low.value() == Approx(*raw.ci_low / divisor).epsilon(1e-14));
      CHECK(row.ci_high.value() == Approx(*raw.ci_high / divisor).epsilon(1e-14));
      CHECK(row.theory_mean.value() == Approx(d / std::sqrt(divisor)).epsilon(1e-14));
      // A = 16, B = C = 4.
      CHECK(row.theory_variance.value() == Approx(24 * d / divisor).epsilon(1e-14));
      CHECK(row.ratio.value() == Approx(row.variance / *row.theory_variance).epsilon(1e-14));
      CHECK(row.z.value() ==
            Approx((row.variance - *row.theory_variance) / *row.std_error).epsilon(1e-12));
      CHECK(row.excess_kurtosis == raw.excess_kurtosis);
      CHECK(row.alpha.value() == Approx(std::sqrt(24 * d)).epsilon(1e-14));
    }
  }
}

TEST_CASE("alpha is sqrt d times sigma squared") {
  VarianceOptions options = sized({1, 64, 256}, 64);
  options.entries.sigma = 3;
  const VarianceResult result = variance(options, {});
  CHECK(result.rows[0].alpha.value() == Approx(9));
  CHECK(result.rows[2].alpha.value() == Approx(72));
  CHECK(result.rows[4].alpha.value() == Approx(144));
}

TEST_CASE("bounded scores are a plain loop's and their variance is G^2 over d") {
  VarianceOptions options = sized({8}, 4000);
  options.scaling = {"qk_norm:6", "cosine:10", "softcap:0.5"};
  const VarianceResult result = variance(options, {});
  REQUIRE(result.rows.size() == 3);
  std::vector<double> cosines, capped;
  for (std::uint64_t trial = 0; trial < 4000; ++trial) {
    std::vector<float> q(8), k(8);
    fill_entries(q, {}, 0, stream_at(Stream::sample_q, 0), trial);
    fill_entries(k, {}, 0, stream_at(Stream::sample_k, 0), trial);
    double qk = 0, qq = 0, kk = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      qk += static_cast<double>(q[i]) * static_cast<double>(k[i]);
      qq += static_cast<double>(q[i]) * static_cast<double>(q[i]);
      kk += static_cast<double>(k[i]) * static_cast<double>(k[i]);
    }
    cosines.push_back(qk / std::sqrt(qq) / std::sqrt(kk));
    capped.push_back(0.5 * std::tanh(qk / std::sqrt(8.0) / 0.5));
  }
  CHECK(result.rows[0].variance == Approx(36 * plain_variance(cosines)).epsilon(1e-12));
  CHECK(result.rows[1].variance == Approx(100 * plain_variance(cosines)).epsilon(1e-12));
  CHECK(result.rows[2].variance == Approx(plain_variance(capped)).epsilon(1e-12));
  CHECK(result.rows[0].theory_variance == 36.0 / 8);
  CHECK(result.rows[1].theory_variance == 100.0 / 8);
  // 4.5 standard errors: one false alarm in 150000 rows.
  CHECK(std::abs(result.rows[0].z.value()) < 4.5);
  CHECK_FALSE(result.rows[2].theory_variance);
  CHECK_FALSE(result.rows[2].z);
  CHECK(result.rows[0].theory_mean == 0.0);
  // No scaling that is a factor: nothing to fit.
  CHECK_FALSE(result.fit);
}

TEST_CASE("components add up to the variance") {
  VarianceOptions options = sized({1, 3, 64, 300}, 400);
  options.components = true;
  options.entries.sigma = 0.5;
  const VarianceResult result = variance(options, {});
  for (const VarianceRow& row : result.rows) {
    INFO(row.d_k << " " << row.scaling);
    const double sum = row.component_variance_sum.value() + row.covariance_term.value();
    CHECK(sum == Approx(row.variance).epsilon(1e-12));
    const double divisor = row.scaling == "none" ? 1 : static_cast<double>(row.d_k);
    const double d = static_cast<double>(row.d_k);
    CHECK(row.covariance_term_std_error.value() ==
          Approx(std::sqrt(2 * d * (d - 1) / 399) / 16 / divisor).epsilon(1e-12));
    CHECK(row.theory_covariance_term == 0.0);
    // 4.5 standard errors: one false alarm in 150000 rows.
    CHECK(std::abs(*row.covariance_term) <= 4.5 * *row.covariance_term_std_error + 1e-12);
    if (row.d_k > 256) {
      CHECK_FALSE(row.components_total);
    } else {
      CHECK(row.components_total.value() == Approx(row.variance).epsilon(1e-12));
    }
  }
  // The sum of the components' variances, by a plain loop.
  std::vector<std::vector<double>> columns(3);
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    std::vector<double> products;
    plain_score(options, 1, trial, &products);
    for (std::size_t i = 0; i < 3; ++i) columns[i].push_back(products[i]);
  }
  double sum = 0;
  for (const auto& column : columns) sum += plain_variance(column);
  CHECK(result.rows[2].component_variance_sum.value() == Approx(sum).epsilon(1e-12));

  options.components = false;
  const VarianceRow without = variance(options, {}).rows[0];
  CHECK_FALSE(without.component_variance_sum);
  CHECK_FALSE(without.covariance_term);
  CHECK_FALSE(without.theory_covariance_term);
  CHECK_FALSE(without.components_total);
}

TEST_CASE("equal scores have a variance of 0 and no interval") {
  VarianceOptions options = sized({4}, 100);
  options.entries.distribution = Distribution::rademacher;
  options.dependence.rho_qk = 1;
  const VarianceResult result = variance(options, {});
  CHECK(result.rows[0].mean == 4);
  CHECK(result.rows[0].variance == 0);
  CHECK(result.rows[0].theory_variance == 0.0);
  CHECK_FALSE(result.rows[0].ratio);
  CHECK_FALSE(result.rows[0].excess_kurtosis);
}

TEST_CASE("the covariance term has no standard error where the entries have no variance") {
  VarianceOptions options;
  options.d_k = {4};
  options.components = true;
  options.sweep.samples = 100;
  CHECK(variance(options, {}).rows[0].covariance_term_std_error);
  options.entries.distribution = Distribution::student_t;
  options.entries.nu = 2;
  CHECK_FALSE(variance(options, {}).rows[0].covariance_term_std_error);
}

TEST_CASE("no value may stand twice in a list") {
  VarianceOptions options;
  options.d_k = {4, 8, 4};
  CHECK(refusal([&] { variance(options, {}); }) == "d_k: got 4, is there twice");
}

}  // namespace
}  // namespace attnlab
