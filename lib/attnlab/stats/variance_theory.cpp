#include "attnlab/stats/variance_theory.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>

#include "attnlab/core/error.h"

namespace attnlab {
namespace {

void require(bool holds, const char* field, double value, const char* rule) {
  if (!holds) throw InputError("", field, fmt::format("{}", value), rule);
}

void check_dimension(double d, const char* field = "d_k", double least = 1) {
  require(d >= least && std::isfinite(d), field, d,
          least == 1 ? "need at least 1" : "need at least 2");
}

void check_equicorrelation(double rho, double d, const char* field) {
  require(rho <= 1 && 1 + (d - 1) * rho >= -1e-12, field, rho, "must be from -1/(d_k - 1) to 1");
}

ScoreTheory independent_score(const ScoreLaw& law) {
  const double d = law.d, mq = law.q.mean, mk = law.k.mean;
  const double sq2 = law.q.sigma * law.q.sigma, sk2 = law.k.sigma * law.k.sigma;
  const double a = sq2 * sk2, b = mq * mq * sk2, c = mk * mk * sq2;
  const double total = a + b + c;
  ScoreTheory theory;
  theory.mean = d * mq * mk;
  theory.variance = d * total;
  // Entries are symmetric about their mean, so that no third moment enters.
  theory.skewness = 6 * mq * mk * a / (std::pow(total, 1.5) * std::sqrt(d));
  const std::optional<double> kq = law.q.kurtosis(), kk = law.k.kurtosis();
  if (kq && kk) {
    const double fourth =
        *kq * *kk * a * a + *kk * b * b + *kq * c * c + 6 * (*kk * a * b + *kq * a * c + b * c);
    theory.excess_kurtosis = (fourth - 3 * total * total) / (d * total * total);
  }
  return theory;
}

// Cumulants 1 to 4 of x y for normal x, y of the given covariance and means: the quadratic form
// z' M z, M = [[0, 1/2], [1/2, 0]], has
// kappa_r = 2^{r-1} (r-1)! (tr (M S)^r + r m' M (S M)^{r-1} m).
std::array<double, 4> product_cumulants(const Eigen::Matrix2d& covariance,
                                        const Eigen::Vector2d& means) {
  Eigen::Matrix2d form;
  form << 0, 0.5, 0.5, 0;
  const Eigen::Matrix2d step = covariance * form;
  Eigen::Matrix2d power = Eigen::Matrix2d::Identity();  // (S M)^{r-1}
  std::array<double, 4> cumulants{};
  double factor = 1;  // 2^{r-1} (r-1)!
  for (int r = 1; r <= 4; ++r) {
    const double mean_term = means.dot(form * power * means);
    power = power * step;
    cumulants[static_cast<std::size_t>(r - 1)] = factor * (power.trace() + r * mean_term);
    factor *= 2 * r;
  }
  return cumulants;
}

// Along 1/sqrt(d) the entries of equicorrelated vectors have the variance 1 + (d-1) rho and all of
// the mean, across it 1 - rho: d independent pairs of normals, d - 1 of them alike.
struct Directions {
  Eigen::Matrix2d along, across;
  Eigen::Vector2d mean_along;
};

Directions directions_of(const ScoreLaw& law) {
  const auto covariance = [&](double of_q, double of_own) {
    const double r = law.rho_qk;
    const double k = r * r * of_q + (1 - r * r) * of_own;
    const double cross = r * of_q * law.q.sigma * law.k.sigma;
    Eigen::Matrix2d matrix;
    matrix << of_q * law.q.sigma * law.q.sigma, cross, cross, k * law.k.sigma * law.k.sigma;
    return matrix;
  };
  const double d = law.d;
  Directions directions;
  directions.along = covariance(1 + (d - 1) * law.rho_q, 1 + (d - 1) * law.rho_k);
  directions.across = covariance(1 - law.rho_q, 1 - law.rho_k);
  directions.mean_along = std::sqrt(d) * Eigen::Vector2d(law.q.mean, law.k.mean);
  return directions;
}

ScoreTheory correlated_score(const ScoreLaw& law) {
  const Directions directions = directions_of(law);
  const auto along = product_cumulants(directions.along, directions.mean_along);
  const auto across = product_cumulants(directions.across, Eigen::Vector2d::Zero());
  std::array<double, 4> sum{};
  for (std::size_t r = 0; r < 4; ++r) sum[r] = along[r] + (law.d - 1) * across[r];
  ScoreTheory theory;
  theory.mean = sum[0];
  const bool normal =
      law.q.distribution == Distribution::normal && law.k.distribution == Distribution::normal;
  if (normal) {
    theory.variance = sum[1];
    theory.skewness = sum[2] / std::pow(sum[1], 1.5);
    theory.excess_kurtosis = sum[3] / (sum[1] * sum[1]);
  } else if (law.rho_qk == 0) {
    theory.variance = sum[1];
  } else if (const std::optional<double> kurtosis = law.q.kurtosis()) {
    // The fourth cumulant of an entry meets itself in rho q_i^2 only.
    const double pair = law.rho_qk * law.q.sigma * law.k.sigma;
    theory.variance = sum[1] + (*kurtosis - 3) * law.d * pair * pair;
  }
  return theory;
}

}  // namespace

ScoreTheory score_theory(const ScoreLaw& law) {
  check_dimension(law.d);
  law.q.check();
  law.k.check();
  check_equicorrelation(law.rho_q, law.d, "rho_q");
  check_equicorrelation(law.rho_k, law.d, "rho_k");
  require(law.rho_qk >= -1 && law.rho_qk <= 1, "rho_qk", law.rho_qk, "must be from -1 to 1");
  const bool same = law.q.distribution == law.k.distribution &&
                    (law.q.distribution != Distribution::student_t || law.q.nu == law.k.nu);
  require(law.rho_qk == 0 || same, "rho_qk", law.rho_qk,
          "needs queries and keys of the same distribution");
  ScoreTheory theory;
  theory.finite_fourth_moment = law.q.kurtosis() && law.k.kurtosis();
  // The square of an entry's fourth moment enters where q_i meets itself.
  if (law.rho_qk != 0 && law.q.distribution == Distribution::student_t && law.q.nu <= 8) {
    theory.finite_fourth_moment = false;
  }
  if (!law.q.variance() || !law.k.variance()) {
    // A mean needs nu > 1 only, and of a product of independent entries no more.
    const auto has_mean = [](const EntryLaw& entry) {
      return entry.distribution != Distribution::student_t || entry.nu > 1;
    };
    if (law.rho_qk == 0 && has_mean(law.q) && has_mean(law.k)) {
      theory.mean = law.d * law.q.mean * law.k.mean;
    }
    return theory;
  }
  const bool finite = theory.finite_fourth_moment;
  const bool independent = law.rho_q == 0 && law.rho_k == 0 && law.rho_qk == 0;
  theory = independent ? independent_score(law) : correlated_score(law);
  theory.finite_fourth_moment = finite;
  return theory;
}

namespace {

// Raw moments 1 to 4 into a theory.
ScoreTheory from_raw_moments(double m1, double m2, std::optional<double> m3,
                             std::optional<double> m4) {
  ScoreTheory theory;
  theory.mean = m1;
  const double variance = m2 - m1 * m1;
  theory.variance = variance;
  if (m3 && m4) {
    const double third = *m3 - 3 * m1 * m2 + 2 * m1 * m1 * m1;
    const double fourth = *m4 - 4 * m1 * *m3 + 6 * m1 * m1 * m2 - 3 * m1 * m1 * m1 * m1;
    theory.skewness = third / std::pow(variance, 1.5);
    theory.excess_kurtosis = fourth / (variance * variance) - 3;
  }
  return theory;
}

// E (|x|^2 / D)^r of the token, r = 1 to 4; the third and fourth for normal tokens only.
struct SquaredLength {
  double second;
  std::optional<double> third, fourth;
};

std::optional<SquaredLength> squared_length(const ProjectionLaw& law) {
  if (law.layer_norm) return SquaredLength{1, 1.0, 1.0};
  const std::optional<double> kurtosis = law.token.kurtosis();
  if (!kurtosis) return std::nullopt;
  const double big_d = law.d_model;
  SquaredLength length{1 + (*kurtosis - 1) / big_d, std::nullopt, std::nullopt};
  if (law.token.distribution == Distribution::normal) {
    length.third = (1 + 2 / big_d) * (1 + 4 / big_d);
    length.fourth = *length.third * (1 + 6 / big_d);
  }
  return length;
}

// Moments of the cosine of two tokens.
struct Cosine {
  double second, fourth;
};

Cosine token_cosine(const ProjectionLaw& law) {
  const double dimensions = law.layer_norm ? law.d_model - 1 : law.d_model;
  return {1 / dimensions, 3 / (dimensions * (dimensions + 2))};
}

// Given the tokens, the entries of W x and W y are d independent pairs of normals of variances
// a = |x|^2/D, b = |y|^2/D and covariance c: zero for free projections.
ScoreTheory cross_score(const ProjectionLaw& law, const std::optional<SquaredLength>& length) {
  const double d = law.d;
  // The law of the cosine is known for normal tokens; that of its square's mean for all.
  const bool normal = law.token.distribution == Distribution::normal;
  const Cosine cosine = law.tied ? token_cosine(law) : Cosine{0, 0};
  const double m2 = d * (1 + (d + 1) * cosine.second);
  // E s^2 needs second moments only.
  if (!length || (law.tied && !normal)) return from_raw_moments(0, m2, {}, {});
  // kappa_1 = d c, kappa_2 = d (ab + c^2), kappa_3 = d (2c^3 + 6abc), kappa_4 = d 6 (a^2 b^2 +
  // 6 abc^2 + c^4); m4 = k4 + 4 k3 k1 + 3 k2^2 + 6 k2 k1^2 + k1^4, in powers of c^2/ab.
  const double constant = 6 * d + 3 * d * d;
  const double square = 36 * d + 24 * d * d + 6 * d * d + 6 * d * d * d;
  const double fourth = 6 * d + 8 * d * d + 3 * d * d + 6 * d * d * d + d * d * d * d;
  const double lengths = length->second * length->second;
  const double m4 = lengths * (constant + square * cosine.second + fourth * cosine.fourth);
  return from_raw_moments(0, m2, 0.0, m4);
}

// Given the token of a = |x|^2/D the score is a times chi-square of d (tied), or a times the
// product of two independent standard normal vectors (free).
ScoreTheory self_score(const ProjectionLaw& law, const std::optional<SquaredLength>& length) {
  if (!length) return {};
  const double d = law.d;
  const auto times = [](std::optional<double> a, double b) {
    return a ? std::optional<double>(*a * b) : std::nullopt;
  };
  if (law.tied) {
    const double chi2 = d * (d + 2), chi3 = chi2 * (d + 4), chi4 = chi3 * (d + 6);
    return from_raw_moments(d, length->second * chi2, times(length->third, chi3),
                            times(length->fourth, chi4));
  }
  return from_raw_moments(0, length->second * d, times(length->fourth, 0),
                          times(length->fourth, 3 * d * d + 6 * d));
}

// The tokens' scale enters every score as sigma^2.
ScoreTheory scaled(ScoreTheory theory, double sigma) {
  const double factor = sigma * sigma;
  if (theory.mean) *theory.mean *= factor;
  if (theory.variance) *theory.variance *= factor * factor;
  return theory;
}

}  // namespace

ProjectedScoreTheory projected_score_theory(const ProjectionLaw& law) {
  check_dimension(law.d);
  check_dimension(law.d_model, "d_model", law.layer_norm ? 2 : 1);
  law.token.check();
  ProjectedScoreTheory theory;
  if (!law.layer_norm && (law.token.mean != 0 || !law.token.variance())) {
    theory.cross.finite_fourth_moment = theory.self.finite_fourth_moment =
        law.token.kurtosis().has_value();
    return theory;
  }
  const std::optional<SquaredLength> length = squared_length(law);
  const double sigma = law.layer_norm ? 1 : law.token.sigma;
  theory.cross = scaled(cross_score(law, length), sigma);
  theory.self = scaled(self_score(law, length), sigma);
  theory.cross.finite_fourth_moment = length.has_value();
  // s_ii is quadratic in the token: its fourth moment needs the token's eighth.
  theory.self.finite_fourth_moment =
      law.layer_norm || law.token.distribution != Distribution::student_t || law.token.nu > 8;
  return theory;
}

double variance_of_variance(double variance, double excess_kurtosis, double samples) {
  return variance * variance * (2 / (samples - 1) + excess_kurtosis / samples);
}

std::optional<PairsTheory> pairs_theory(const EntryLaw& law, double d, double queries,
                                        double keys) {
  check_dimension(d);
  const std::optional<double> kurtosis = law.kurtosis();
  if (!kurtosis) return std::nullopt;
  const double k = *kurtosis;
  // Var s^2 = E s^4 - d^2 = d (2d + K^2 - 3) for unit entries; it is 0 for d = 1 of Rademacher.
  const double spread = 2 * d + k * k - 3;
  PairsTheory theory{};
  theory.correlation = spread > 0 ? (k - 1) / spread : 0;
  theory.effective_pairs = queries * keys / (1 + (queries + keys - 2) * theory.correlation);
  theory.variance_of_estimate = d * spread / theory.effective_pairs;
  return theory;
}

double unit_variance_divisor(double d, double sigma_q, double sigma_k) {
  return std::sqrt(d) * sigma_q * sigma_k;
}

}  // namespace attnlab
