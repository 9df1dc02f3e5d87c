#include <cmath>

#include "attnlab/experiments/variance.h"
#include "attnlab/stats/variance_theory.h"
#include "catch.h"
#include "experiments/identity.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

// Standard errors that a figure may be off: one false alarm in 150000 comparisons.
constexpr double kSigmas = 4.5;

VarianceOptions sized(std::vector<Index> d_k, Index samples) {
  VarianceOptions options;
  options.d_k = std::move(d_k);
  options.scaling = {"none"};
  options.sweep.samples = samples;
  return options;
}

// The row of one d_k, which must agree with its theory.
VarianceRow agreeing(const VarianceOptions& options) {
  const VarianceRow row = variance(options, {}).rows.at(0);
  INFO("variance " << row.variance << ", theory " << row.theory_variance.value());
  CHECK(std::abs(row.z.value()) < kSigmas);
  const double mean_error = std::sqrt(*row.theory_variance / static_cast<double>(row.samples));
  CHECK(std::abs(row.mean - row.theory_mean.value()) < kSigmas * mean_error);
  CHECK(row.ci_low.value() < row.variance);
  CHECK(row.variance < row.ci_high.value());
  return row;
}

TEST_CASE("the variance of independent entries is d_k sigma^4") {
  for (const Distribution distribution : {Distribution::normal, Distribution::uniform,
                                          Distribution::rademacher, Distribution::laplace}) {
    VarianceOptions options = sized({16}, 20000);
    options.entries = {distribution, std::nullopt, 0.5};
    CHECK(agreeing(options).theory_variance == 1.0);
  }
}

TEST_CASE("means add their part to the variance") {
  VarianceOptions options = sized({16}, 20000);
  options.dependence.mean_q = 0.5;
  options.dependence.mean_k = -1;
  const VarianceRow row = agreeing(options);
  CHECK(row.theory_mean == -8.0);
  CHECK(row.theory_variance == 16 * 2.25);
}

TEST_CASE("correlation within q and within k makes the covariance term") {
  // Theory B (i): d, rho_q, rho_k, variance.
  struct Case {
    Index d;
    double rho_q, rho_k, variance;
  };
  for (const Case& c : {Case{4, 0.5, 0.5, 7}, Case{16, 0.3, 0.3, 37.6}, Case{64, 0.5, 0.5, 1072},
                        Case{64, 0.5, 0, 64}, Case{64, 0.5, -1.0 / 63, 32}}) {
    INFO(c.d << " " << c.rho_q << " " << c.rho_k);
    VarianceOptions options = sized({c.d}, 20000);
    options.dependence.rho_q = c.rho_q;
    options.dependence.rho_k = c.rho_k;
    options.components = true;
    const VarianceRow row = agreeing(options);
    CHECK(row.theory_variance.value() == Approx(c.variance).epsilon(1e-12));
    const double d = static_cast<double>(c.d);
    CHECK(row.theory_covariance_term.value() == Approx(c.variance - d).margin(1e-10));
    // The variances of the components are the smaller part of what varies.
    CHECK(std::abs(*row.covariance_term - *row.theory_covariance_term) < kSigmas * *row.std_error);
    CHECK(row.component_variance_sum.value() == Approx(d).epsilon(0.1));
    CHECK(*row.component_variance_sum + *row.covariance_term ==
          Approx(row.variance).epsilon(1e-12));
    CHECK(row.components_total.value() == Approx(row.variance).epsilon(1e-12));
    // Its standard error is known for independent entries only.
    CHECK_FALSE(row.covariance_term_std_error);
  }
}

TEST_CASE("keys correlated with queries have a mean score and more variance") {
  // Theory B (ii): mean d rho, variance d (1 + rho^2 (K - 2)).
  VarianceOptions options = sized({64}, 20000);
  options.dependence.rho_qk = 0.5;
  const VarianceRow normal = agreeing(options);
  CHECK(normal.theory_mean.value() == Approx(32));
  CHECK(normal.theory_variance.value() == Approx(80));
  options.entries.distribution = Distribution::rademacher;
  const VarianceRow signs = agreeing(options);
  CHECK(signs.theory_variance.value() == Approx(64 * 0.75));
}

TEST_CASE("correlation of all three kinds meets its theory") {
  VarianceOptions options = sized({16}, 20000);
  options.dependence = {0.3, -0.2, 0.3, 0.1, 0.5};
  options.entries.sigma = 1.5;
  agreeing(options);
}

TEST_CASE("scores behind projections have the variance of theory B") {
  for (const Projection projection : {Projection::free, Projection::tied}) {
    for (const Positions positions : {Positions::same, Positions::different}) {
      for (const bool layer_norm : {false, true}) {
        INFO("tied " << (projection == Projection::tied) << ", same "
                     << (positions == Positions::same) << ", layer norm " << layer_norm);
        VarianceOptions options = sized({8}, 20000);
        options.projection = {projection, positions, layer_norm, Index{32}};
        const VarianceRow row = agreeing(options);
        // tests/data/theory/projected.txt, D = 32.
        const bool tied = projection == Projection::tied, same = positions == Positions::same;
        CHECK(row.theory_mean.value() == Approx(tied && same ? 8 : 0));
        const double expected = same ? (tied ? (layer_norm ? 16 : 21) : (layer_norm ? 8 : 8.5))
                                     : (tied ? (layer_norm ? 8 + 72.0 / 31 : 10.25) : 8);
        CHECK(row.theory_variance.value() == Approx(expected).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("tokens are of the distribution and size that were asked for") {
  VarianceOptions options = sized({4}, 20000);
  options.projection = {Projection::free, Positions::same, false, Index{8}};
  options.entries.distribution = Distribution::laplace;
  // d (1 + (K - 1) / D), K = 6.
  CHECK(agreeing(options).theory_variance.value() == Approx(4 * (1 + 5.0 / 8)));
  options.projection.d_model.reset();
  CHECK(agreeing(options).theory_variance.value() == Approx(4 * (1 + 5.0 / 512)));
}

TEST_CASE("the variance grows as d_k to the power 1") {
  VarianceOptions options = sized({1, 4, 16, 64, 256}, 4000);
  options.scaling = {"none", "inv_sqrt_d"};
  const VarianceResult result = variance(options, {});
  const VarianceFit fit = result.fit.value();
  CHECK(std::abs(*fit.slope - 1) < kSigmas * *fit.std_error);
  CHECK(std::abs(*fit.intercept) < 0.5);
  // Weighted least squares in plain sums; the scaled rows say the same and are left out.
  double w0 = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
  for (std::size_t i = 0; i < result.rows.size(); i += 2) {
    const VarianceRow& row = result.rows[i];
    const double x = std::log(static_cast<double>(row.d_k)), y = std::log(row.variance);
    const double w = std::pow(row.variance / *row.std_error, 2);
    w0 += w;
    wx += w * x;
    wy += w * y;
    wxx += w * x * x;
    wxy += w * x * y;
  }
  const double slope = (w0 * wxy - wx * wy) / (w0 * wxx - wx * wx);
  const double error = std::sqrt(w0 / (w0 * wxx - wx * wx));
  CHECK(fit.slope.value() == Approx(slope).epsilon(1e-10));
  CHECK(fit.std_error.value() == Approx(error).epsilon(1e-10));
  CHECK(fit.ci_low.value() == Approx(slope - 1.959963984540054 * error).epsilon(1e-10));
  CHECK(fit.ci_high.value() == Approx(slope + 1.959963984540054 * error).epsilon(1e-10));
  CHECK(result.finding.find("grows as d_k^") != std::string::npos);

  // From scaled rows alone it is the same.
  options.scaling = {"inv_sqrt_d"};
  CHECK(variance(options, {}).fit->slope.value() == Approx(slope).epsilon(1e-10));
  options.d_k = {64};
  CHECK_FALSE(variance(options, {}).fit);
}

TEST_CASE("all pairs have an interval over blocks that shared vectors do not deceive") {
  VarianceOptions options = sized({4}, 64 * 32 * 32);
  options.sampling = Sampling::pairs;
  const VarianceResult result = variance(options, {});
  const VarianceRow& row = result.rows[0];
  CHECK(row.samples == 64 * 32 * 32);
  CHECK(std::abs(row.z.value()) < kSigmas);
  // Theory C: the mean over 64 blocks of 32 x 32 pairs. The standard error is itself estimated from
  // 64 blocks, to about 9%: 4.5 of those.
  const PairsTheory theory = pairs_theory({}, 4, 32, 32).value();
  CHECK(row.std_error.value() == Approx(std::sqrt(theory.variance_of_estimate / 64)).epsilon(0.4));
  // Independent pairs as many would be surer than these are.
  VarianceOptions independent = options;
  independent.sampling = Sampling::independent;
  CHECK(*row.std_error > 1.5 * variance(independent, {}).rows[0].std_error.value());
  CHECK(mentions(result.notes, "pairs: independent blocks of 32 queries"));
}

TEST_CASE("the variance of pairs is the mean square of a plain loop over all of them") {
  VarianceOptions options = sized({3, 5}, 64 * 4 * 4 + 20);
  options.sampling = Sampling::pairs;
  options.dependence.rho_q = 0;
  const VarianceResult result = variance(options, {});
  for (std::size_t p = 0; p < 2; ++p) {
    const auto d = static_cast<std::size_t>(options.d_k[p]);
    // 1044 pairs make 65 blocks of 16.
    CHECK(result.rows[p].samples == 65 * 16);
    std::vector<double> squares;
    for (std::uint64_t block = 0; block < 65; ++block) {
      double square = 0;
      for (std::uint64_t i = 0; i < 4; ++i) {
        for (std::uint64_t j = 0; j < 4; ++j) {
          std::vector<float> q(d), k(d);
          fill_entries(q, {}, 0, stream_at(Stream::sample_q, p), block * 4 + i);
          fill_entries(k, {}, 0, stream_at(Stream::sample_k, p), block * 4 + j);
          double score = 0;
          for (std::size_t c = 0; c < d; ++c) {
            score += static_cast<double>(q[c]) * static_cast<double>(k[c]);
          }
          square += score * score / 16;
        }
      }
      squares.push_back(square);
    }
    double mean = 0, around = 0;
    for (const double square : squares) mean += square / 65;
    for (const double square : squares) around += (square - mean) * (square - mean) / 64;
    CHECK(result.rows[p].variance == Approx(mean).epsilon(1e-12));
    CHECK(result.rows[p].std_error.value() == Approx(std::sqrt(around / 65)).epsilon(1e-12));
  }
}

TEST_CASE("at large samples a score that carries the fourth moment is pointed out") {
  VarianceOptions options = sized({1}, 100000);
  options.entries = {Distribution::student_t, 4.1, 1};
  const VarianceResult heavy = variance(options, {});
  REQUIRE(heavy.rows[0].largest_fourth_power_share.value() > 0.1);
  CHECK(mentions(heavy.notes, "of the fourth moment, which may be infinite"));
  options.entries = {};
  const VarianceResult light = variance(options, {});
  CHECK(light.rows[0].largest_fourth_power_share.value() < 0.1);
  CHECK(light.notes.empty());
}

TEST_CASE("variance has the same bits on any number of threads and shards") {
  VarianceOptions plain = sized({1, 7, 33}, 450);
  plain.scaling = {"none", "inv_sqrt_d", "qk_norm:2", "softcap:3"};

  SECTION("independent pairs") { check_identity(variance, plain); }
  SECTION("components") {
    plain.components = true;
    check_identity(variance, plain);
  }
  SECTION("dependence") {
    plain.dependence = {0.5, 0.25, 0.125, 0.25, 0.5};
    check_identity(variance, plain);
  }
  SECTION("student_t without a fourth moment") {
    plain.entries = {Distribution::student_t, 3.0, 2};
    check_identity(variance, plain);
  }
  SECTION("projections") {
    plain.projection = {Projection::tied, Positions::different, true, Index{16}};
    check_identity(variance, plain);
  }
  SECTION("pairs of one a block") {
    plain.sampling = Sampling::pairs;
    plain.sweep.samples = 250;
    check_identity(variance, plain);
  }
  SECTION("pairs of blocks") {
    plain.sampling = Sampling::pairs;
    plain.d_k = {3};
    plain.scaling = {"none", "inv_sqrt_d"};
    plain.sweep.samples = 200 * 64 * 64;  // four blocks of trials
    check_identity(variance, plain);
  }
}

}  // namespace
}  // namespace attnlab
