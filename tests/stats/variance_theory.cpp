#include "attnlab/stats/variance_theory.h"

#include <cmath>
#include <string>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/stats/moments.h"
#include "catch.h"
#include "theory_table.h"

namespace attnlab {
namespace {

EntryLaw named_law(const std::string& name) {
  EntryLaw law;
  for (const Distribution known : {Distribution::normal, Distribution::uniform,
                                   Distribution::rademacher, Distribution::laplace}) {
    if (name == kChoiceNames<Distribution>[static_cast<std::size_t>(known)]) {
      law.distribution = known;
      return law;
    }
  }
  // student_t5
  law.distribution = Distribution::student_t;
  law.nu = std::stod(name.substr(name.find_first_of("0123456789")));
  return law;
}

bool near(std::optional<double> value, double expected, double tolerance = 1e-12) {
  if (std::isnan(expected)) return !value;
  return value && std::fabs(*value - expected) <= tolerance * (1 + std::fabs(expected));
}

TEST_CASE("the moments of a score of independent entries follow their table") {
  for (const auto& row : test::theory_table("dot_moments.txt")) {
    ScoreLaw law;
    law.d = row.number(2);
    law.q = named_law(row.word(0));
    law.k = named_law(row.word(1));
    law.q.sigma = row.number(3);
    law.k.sigma = row.number(4);
    law.q.mean = row.number(5);
    law.k.mean = row.number(6);
    INFO(row.word(0) << " " << row.word(1) << " d " << law.d);
    const ScoreTheory theory = score_theory(law);
    CHECK(near(theory.mean, row.number(7)));
    CHECK(near(theory.variance, row.number(8)));
    CHECK(near(theory.skewness, row.number(9)));
    CHECK(near(theory.excess_kurtosis, row.number(10)));
    CHECK(theory.finite_fourth_moment == !std::isnan(row.number(10)));
  }
}

TEST_CASE("the moments of a score of correlated entries follow their table") {
  for (const auto& row : test::theory_table("correlated.txt")) {
    ScoreLaw law;
    law.d = row.number(0);
    law.q = law.k = named_law(row.word(1));
    law.rho_q = row.number(2);
    law.rho_k = row.number(3);
    law.rho_qk = row.number(4);
    law.k.mean = row.number(5);
    INFO(row.word(1) << " d " << law.d << " rho " << law.rho_q << " " << law.rho_k << " "
                     << law.rho_qk);
    const ScoreTheory theory = score_theory(law);
    CHECK(near(theory.mean, row.number(6), 1e-11));
    CHECK(near(theory.variance, row.number(7), 1e-11));
    // The table leaves out the kurtosis with means, which is known for normal entries.
    if (!std::isnan(row.number(8)) || row.word(1) != "normal") {
      CHECK(near(theory.excess_kurtosis, row.number(8), 1e-11));
    }
  }
}

TEST_CASE("without correlation the quadratic form gives the moments of independent entries") {
  ScoreLaw law;
  law.d = 7;
  law.q.mean = 0.4;
  law.k.mean = -1.2;
  law.q.sigma = 1.5;
  const ScoreTheory plain = score_theory(law);
  law.rho_q = 1e-13;  // takes the other path
  const ScoreTheory form = score_theory(law);
  CHECK(near(form.mean, *plain.mean, 1e-10));
  CHECK(near(form.variance, *plain.variance, 1e-10));
  CHECK(near(form.skewness, *plain.skewness, 1e-10));
  CHECK(near(form.excess_kurtosis, *plain.excess_kurtosis, 1e-10));
}

// Five standard errors of mean and variance: one seed in 400000 each.
TEST_CASE("measured scores have the moments of every kind of law at once") {
  ScoreLaw law;
  law.d = 6;
  law.q.sigma = 0.8;
  law.q.mean = 0.5;
  law.k.mean = -0.3;
  law.rho_q = 0.4;
  law.rho_k = -0.1;
  law.rho_qk = 0.6;
  for (const Distribution distribution : {Distribution::normal, Distribution::laplace}) {
    law.q.distribution = law.k.distribution = distribution;
    Moments sample;
    std::vector<float> q(6), k(6);
    for (std::uint64_t trial = 0; trial < 40000; ++trial) {
      fill_standard(q, law.q, 31, Stream::sample_q, trial);
      fill_standard(k, law.k, 31, Stream::sample_k, trial);
      equicorrelate(q, law.rho_q);
      equicorrelate(k, law.rho_k);
      correlate_with(k, q, law.rho_qk);
      apply_scale(q, law.q);
      apply_scale(k, law.k);
      double s = 0;
      for (std::size_t i = 0; i < 6; ++i) s += static_cast<double>(q[i]) * k[i];
      sample.add(s);
    }
    const ScoreTheory theory = score_theory(law);
    INFO(kChoiceNames<Distribution>[static_cast<std::size_t>(distribution)]);
    CHECK(std::fabs(sample.mean - *theory.mean) < 5 * *sample.mean_std_error());
    const double se =
        std::sqrt(variance_of_variance(*theory.variance, *sample.excess_kurtosis(), 40000));
    CHECK(std::fabs(*sample.variance() - *theory.variance) < 5 * se);
    CHECK(theory.excess_kurtosis.has_value() == (distribution == Distribution::normal));
    if (theory.excess_kurtosis) {
      CHECK(std::fabs(*sample.excess_kurtosis() - *theory.excess_kurtosis) < 0.6);
      CHECK(std::fabs(*sample.skewness() - *theory.skewness) < 0.15);
    }
  }
}

TEST_CASE("heavy tails leave figures undefined one after the other") {
  ScoreLaw law;
  law.q.distribution = law.k.distribution = Distribution::student_t;
  law.q.nu = law.k.nu = 3;
  CHECK(*score_theory(law).variance == 1);
  CHECK(!score_theory(law).excess_kurtosis);
  CHECK(!score_theory(law).finite_fourth_moment);
  law.q.nu = 2;
  CHECK(!score_theory(law).variance);
  CHECK(*score_theory(law).mean == 0);
  law.q.nu = 1;
  CHECK(!score_theory(law).mean);
  law.q.nu = law.k.nu = 6;
  law.rho_qk = 0.5;  // q_i^2 needs the eighth moment for the fourth of the score
  CHECK(score_theory(law).variance);
  CHECK(!score_theory(law).finite_fourth_moment);
  law.k.nu = 7;
  CHECK_THROWS_AS(score_theory(law), InputError);
}

TEST_CASE("projected scores follow their table") {
  for (const auto& row : test::theory_table("projected.txt")) {
    ProjectionLaw law;
    law.d_model = row.number(0);
    law.d = row.number(1);
    law.tied = row.number(2) != 0;
    law.layer_norm = row.number(3) != 0;
    INFO("D " << law.d_model << " d " << law.d << (law.tied ? " tied" : "")
              << (law.layer_norm ? " layer norm" : ""));
    const ProjectedScoreTheory theory = projected_score_theory(law);
    CHECK(near(theory.self.mean, row.number(4)));
    CHECK(near(theory.self.variance, row.number(5)));
    CHECK(near(theory.cross.mean, row.number(6)));
    CHECK(near(theory.cross.variance, row.number(7)));
  }
}

// Tokens through matrices drawn afresh each time. Five standard errors: one seed in 400000 each.
TEST_CASE("measured projected scores have the mean, variance and kurtosis of the theory") {
  constexpr std::size_t kModel = 5, kD = 3;
  for (int which = 0; which < 4; ++which) {
    ProjectionLaw law;
    law.d_model = kModel;
    law.d = kD;
    law.tied = (which & 1) != 0;
    law.layer_norm = (which & 2) != 0;
    law.token.sigma = 1.25;
    Moments cross, self;
    for (std::uint64_t trial = 0; trial < 40000; ++trial) {
      std::vector<float> x(kModel), y(kModel), wq(kModel * kD), wk(kModel * kD);
      fill_entries(x, law.token, 8, Stream::sample_x, trial);
      fill_entries(y, law.token, 8, Stream::sample_y, trial);
      fill_normal(wq, 8, Stream::sample_weight_q, trial);
      fill_normal(wk, 8, Stream::sample_weight_k, trial);
      if (law.tied) wk = wq;
      const auto normalise = [&](std::vector<float>& token) {
        if (!law.layer_norm) return;
        const Moments entries = moments_of(std::vector<double>(token.begin(), token.end()));
        for (float& e : token) {
          e = static_cast<float>((e - entries.mean) / std::sqrt(*entries.population_variance()));
        }
      };
      normalise(x);
      normalise(y);
      double s_cross = 0, s_self = 0;
      for (std::size_t i = 0; i < kD; ++i) {
        double q = 0, k = 0, own = 0;
        for (std::size_t j = 0; j < kModel; ++j) {
          q += static_cast<double>(wq[i * kModel + j]) * x[j];
          k += static_cast<double>(wk[i * kModel + j]) * y[j];
          own += static_cast<double>(wk[i * kModel + j]) * x[j];
        }
        s_cross += q * k / kModel;
        s_self += q * own / kModel;
      }
      cross.add(s_cross);
      self.add(s_self);
    }
    INFO("case " << which);
    const ProjectedScoreTheory theory = projected_score_theory(law);
    const auto agrees = [](const Moments& sample, const ScoreTheory& expected) {
      CHECK(std::fabs(sample.mean - *expected.mean) < 5 * *sample.mean_std_error());
      const double error =
          std::sqrt(variance_of_variance(*expected.variance, *expected.excess_kurtosis, 40000));
      CHECK(std::fabs(*sample.variance() - *expected.variance) < 5 * error);
      CHECK(*sample.excess_kurtosis() > 0.4 * *expected.excess_kurtosis);
      CHECK(*sample.excess_kurtosis() < 2 * *expected.excess_kurtosis);
    };
    agrees(cross, theory.cross);
    agrees(self, theory.self);
  }
}

TEST_CASE(
    "projected tokens with a mean or without a variance have no theory but after layer norm") {
  ProjectionLaw law;
  law.d = 4;
  law.d_model = 8;
  law.token.mean = 1;
  CHECK(!projected_score_theory(law).cross.variance);
  CHECK(!projected_score_theory(law).self.mean);
  law.layer_norm = true;
  CHECK(*projected_score_theory(law).cross.variance == 4);
  law.layer_norm = false;
  law.token = named_law("student_t3");
  const ProjectedScoreTheory heavy = projected_score_theory(law);
  CHECK(*heavy.cross.variance == 4);
  CHECK(!heavy.cross.excess_kurtosis);
  CHECK(!heavy.cross.finite_fourth_moment);
  CHECK(!heavy.self.variance);
  // Free projections need no more than the length of the token.
  law.token = named_law("laplace");
  CHECK(projected_score_theory(law).cross.excess_kurtosis);
  law.tied = true;
  CHECK(!projected_score_theory(law).cross.excess_kurtosis);
  CHECK(*projected_score_theory(law).self.variance == Approx(24 * (1 + 5.0 / 8) - 16));
}

TEST_CASE("all pairs of queries and keys count as the table says") {
  for (const auto& row : test::theory_table("all_pairs.txt")) {
    INFO(row.word(0) << " d " << row.number(1));
    const auto theory =
        pairs_theory(named_law(row.word(0)), row.number(1), row.number(2), row.number(3));
    CHECK(near(theory->variance_of_estimate, row.number(4)));
    CHECK(near(theory->effective_pairs, row.number(5)));
    CHECK(near(theory->correlation, row.number(6)));
  }
  CHECK(!pairs_theory(named_law("student_t4"), 4, 8, 8));
  CHECK(pairs_theory(named_law("normal"), 61, 8, 8)->correlation == Approx(1.0 / 64));
  CHECK(pairs_theory(named_law("rademacher"), 1, 8, 8)->effective_pairs == 64);
}

TEST_CASE("the variance of a variance counts the kurtosis") {
  CHECK(variance_of_variance(4, 6, 1000) == Approx(16 * (2.0 / 999 + 0.006)).epsilon(1e-15));
  CHECK(unit_variance_divisor(64, 2, 0.5) == 8);
}

TEST_CASE("laws of scores that cannot be are refused") {
  const auto with = [](auto change) {
    ScoreLaw law;
    law.d = 4;
    change(law);
    return score_theory(law);
  };
  CHECK_THROWS_AS(with([](ScoreLaw& law) { law.d = 0; }), InputError);
  CHECK_THROWS_AS(with([](ScoreLaw& law) { law.q.sigma = -1; }), InputError);
  CHECK_THROWS_AS(with([](ScoreLaw& law) { law.k.sigma = -1; }), InputError);
  CHECK_THROWS_AS(with([](ScoreLaw& law) { law.rho_q = -0.4; }), InputError);
  CHECK_THROWS_AS(with([](ScoreLaw& law) { law.rho_k = 1.1; }), InputError);
  CHECK_THROWS_AS(with([](ScoreLaw& law) { law.rho_qk = -1.1; }), InputError);
  ProjectionLaw law;
  law.layer_norm = true;
  CHECK_THROWS_AS(projected_score_theory(law), InputError);
  law.layer_norm = false;
  law.d_model = 0;
  CHECK_THROWS_AS(projected_score_theory(law), InputError);
}

}  // namespace
}  // namespace attnlab
