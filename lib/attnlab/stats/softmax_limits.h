#pragma once

#include <cstdint>
#include <optional>

namespace attnlab {

// Closed forms at the two ends of softmax_theory, to be shown beside it.

// Below it many keys share the weight, above it a few: v_c = 2 ln n, the freezing transition of the
// random energy model (Derrida, "Random-energy model", 1981).
double critical_variance(std::uint64_t n);

// The frozen phase: the weights are those of a Poisson-Dirichlet process of parameter m, asymptotic
// m = sqrt(v_c / v); m = E[M_n] / sqrt(v) comes much closer at finite n. Defined for 0 < m < 1.
struct FrozenSoftmax {
  double m;
  double sum_p2;       // 1 - m
  double sum_p3;       // (1 - m)(2 - m) / 2
  double trace;        // m
  double entropy;      // psi(1) - psi(1 - m)
  double jacobian_f2;  // m (1 - m) / 3
};
std::optional<FrozenSoftmax> frozen_softmax(double m);
// At the m of n keys: m = E[M_n] / sqrt(v).
std::optional<FrozenSoftmax> frozen_softmax(std::uint64_t n, double v);

// Share of rows with max p > x in the frozen phase, x >= 1/2: sin(pi m) / (pi m) ((1 - x)/x)^m.
// Nothing for another x or m outside (0, 1).
std::optional<double> frozen_share_above(double m, double x);

// To second order in v, c = 1 - 1/n (the Jacobian's to first order).
struct SmallVarianceSoftmax {
  double sum_p2;       // (1 + v c + (v^2/2) c (1 - 6/n)) / n
  double entropy;      // ln n - v c/2 + (3 v^2/4n) c
  double jacobian_f2;  // c/n (1 + v (1 - 4/n))
};
SmallVarianceSoftmax small_variance_softmax(std::uint64_t n, double v);

// The largest argument of exp that float32 and float64 can hold the result of.
inline constexpr double kLargestExponent32 = 88.72283172607422;
inline constexpr double kLargestExponent64 = 709.782712893384;

// Probability that softmax without subtracting the maximum overflows (and the row is NaN): that one
// of n independent N(0, v) logits exceeds `largest`, 1 - Phi(largest / sqrt v)^n.
double naive_overflow_share(std::uint64_t n, double v, double largest = kLargestExponent32);
// The same where the logits of a row share their query of d entries: averaged over v X/d.
double shared_naive_overflow_share(std::uint64_t n, double d, double v,
                                   double largest = kLargestExponent32);

}  // namespace attnlab
