#pragma once

#include <cstdint>
#include <optional>

#include "attnlab/stats/distributions.h"

namespace attnlab {

// Exact moments of one score. What does not exist, or has no closed form here, is nothing.
struct ScoreTheory {
  std::optional<double> mean;
  std::optional<double> variance;
  std::optional<double> skewness;
  std::optional<double> excess_kurtosis;
  // Whether the fourth moment of the score is finite: only then is there an interval for its
  // variance.
  bool finite_fourth_moment = true;
};

// s = q.k of d entries, of laws `q` and `k`, where
//   rho_q, rho_k   correlate any two entries of q, and of the part of k that is its own,
//   rho_qk         correlates q_i with k_i: k = rho_qk q + sqrt(1 - rho_qk^2) (own part), in
//                  standard units, which needs q and k of the same distribution.
// With A = sq^2 sk^2, B = mq^2 sk^2, C = mk^2 sq^2 and independent entries:
//   mean d mq mk, variance d (A + B + C), skewness 6 mq mk A / ((A+B+C)^1.5 sqrt d),
//   excess kurtosis [Kq Kk A^2 + mq^4 Kk sk^4 + mk^4 Kq sq^4 + 6 (Kk A B + Kq A C + B C)
//                    - 3 (A+B+C)^2] / (d (A+B+C)^2).
// With correlations the variance is tr(Sq Sk) + tr(C^2) + (K - 3) d rho_qk^2 sq^2 sk^2 + the terms
// of the means, C = Cov(q, k), for any distribution; skewness and kurtosis are known for normal
// entries (the cumulants of a quadratic form) and nothing otherwise.
struct ScoreLaw {
  double d = 1;
  EntryLaw q, k;
  double rho_q = 0, rho_k = 0, rho_qk = 0;
};
// Throws InputError when d < 1, a law is not valid, a correlation is out of its range, or rho_qk is
// not 0 and the distributions differ.
ScoreTheory score_theory(const ScoreLaw& law);

// s = (W_q x).(W_k y) of two tokens of D independent standard entries of kurtosis K, projected to d
// by W of independent normal entries of variance 1/D; `tied` W_k = W_q; `layer_norm` tokens are
// shifted and scaled to mean 0 and mean square 1 before. `self` is y = x.
//   free: cross d, self d (1 + (K-1)/D), with layer norm d both
//   tied: cross d (1 + (d+1)/D), self mean d and variance d (d+2)(1 + (K-1)/D) - d^2;
//         with layer norm cross d (1 + (d+1)/(D-1)), self 2d
// The kurtosis is known for normal tokens.
struct ProjectionLaw {
  double d = 1;
  double d_model = 1;
  bool tied = false;
  bool layer_norm = false;
  EntryLaw token;  // of mean 0, or with layer norm of any mean
};
struct ProjectedScoreTheory {
  ScoreTheory cross, self;
};
// Throws InputError when d < 1 or d_model < 1 (2 with layer norm). Nothing is known where the
// tokens have a mean and no layer norm removes it.
ProjectedScoreTheory projected_score_theory(const ProjectionLaw& law);

// The variance of the sample variance S^2 of N values of the given variance and excess kurtosis:
// variance^2 (2/(N-1) + kappa/N).
double variance_of_variance(double variance, double excess_kurtosis, double samples);

// All pairs of m_q queries and m_k keys share vectors: the mean square of their scores varies as
// that of N_eff = m_q m_k / (1 + (m_q + m_k - 2) r) independent pairs, where
// r = (K - 1) / (2d + K^2 - 3) is the correlation of s^2 between pairs that share one vector
// (1/(d + 3) for normal entries, 0 for Rademacher). For entries of mean 0.
struct PairsTheory {
  double correlation;           // r
  double effective_pairs;       // N_eff
  double variance_of_estimate;  // of the mean square, for entries of variance 1
};
// Nothing where the kurtosis is infinite.
std::optional<PairsTheory> pairs_theory(const EntryLaw& law, double d, double queries, double keys);

// alpha = sqrt(d) sigma_q sigma_k: the divisor that makes the variance of a zero-mean score 1.
double unit_variance_divisor(double d, double sigma_q, double sigma_k);

}  // namespace attnlab
