#pragma once

#include <cstdint>

namespace attnlab {

// What the softmax p of n independent N(0, v) logits z is on average: expectations by quadrature,
// no simulation. Relative error below 1e-10 for n to 2^20 and any v (of the entropy, or 1e-15 in
// nats); beyond v = 10^12 by the 1/sqrt(v) law of the frozen phase.
//
// With Z = sum e^z, 1/Z^k = 1/Gamma(k) Int e^{ku} exp(-Z e^u) du turns every expectation of a
// product of powers of p into one integral over u of products of the one-logit functions
//   phi(u) = E exp(-e^{u+z}),   A_k(u) = E e^{k(u+z)} exp(-e^{u+z}).
// Each is written as a sum of positive terms, so that what is nearly 0 or nearly 1 keeps its
// digits.
struct SoftmaxTheory {
  double sum_p2 = 0;       // E sum p^2 = n Int A_2 phi^{n-1}
  double sum_p3 = 0;       // E sum p^3
  double trace = 0;        // E tr J = 1 - E sum p^2 = n (n-1) Int A_1^2 phi^{n-2}
  double jacobian_f2 = 0;  // E ||J||_F^2, J_ij = p_i (delta_ij - p_j)
  double entropy = 0;      // E H in nats
  double log_sum_exp = 0;  // E ln Z
  double spread = 0;       // T = E sum p^2 (z - sum p z)^2, of the gradient to the query
};

// Throws InputError unless n >= 1 and v is >= 0 and finite.
SoftmaxTheory softmax_theory(std::uint64_t n, double v);

// E max p, to a relative error of 1e-10: given the largest logit y the others are cut off at y, and
// 1/(1 + sum e^{z - y}) = Int e^{u - e^u} exp(-e^u sum e^{z - y}) du.
double expected_max_p(std::uint64_t n, double v);

// E[M_n], M_n the maximum of n standard normals. m = E[M_n] / sqrt(v) tells how far the softmax is
// saturated.
double expected_normal_maximum(std::uint64_t n);

}  // namespace attnlab
