#pragma once

#include <cstdint>
#include <functional>

#include "attnlab/stats/softmax_theory.h"

namespace attnlab {

// E F(X / d) for X chi-square of d >= 1 degrees of freedom, not only a whole number, by the
// trapezoid rule in ln x, as good for d = 1 as for d = 10^6. F must be smooth in ln x and change
// little below x = 1 / v.
double chi_square_mean(double d, double v, const std::function<double(double)>& f);

// The softmax of real dot products: given the query the logits of one row are independent
// N(0, v X/d), X = |q|^2 / sigma^2 chi-square of d = d_k degrees of freedom, so that every
// expectation is that of softmax_theory averaged over X. (With the query drawn once a row the
// logits of a row share its length; that is why rows vary more than independent logits do.)
struct SharedQueryTheory {
  SoftmaxTheory mean;        // E over x = X/d of each expectation at v x
  double max_p = 0;          // E max p
  double jacobian_f2_x = 0;  // E x ||J||_F^2, of the gradient to the keys
  double spread_over_x = 0;  // E T / x, of the gradient to the query along itself
};

// Throws InputError unless n >= 1, d >= 1 and v is >= 0 and finite. About a tenth of a second at
// the worst (d = 1), a hundredth for d >= 64. Without `with_max_p` max_p is left 0 and most of the
// time is saved.
SharedQueryTheory shared_query_theory(std::uint64_t n, double d, double v, bool with_max_p = true);

}  // namespace attnlab
