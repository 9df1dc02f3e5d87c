#pragma once

#include <span>

#include "attnlab/core/dtype.h"

namespace attnlab {

// The softmax of one row of n logits z at temperature t,
//
//     s_i = exp(z_i / t) / sum_j exp(z_j / t)
//
// (Bridle, "Probabilistic interpretation of feedforward classification network outputs", 1990), for
// T = Float16, BFloat16, float and double. The 16-bit types are computed in float32 and rounded
// once. Both spans have length n, which may be 0, and may be the same memory. t is positive and
// finite.
//
// A row without a finite logit, all -infinity, has no distribution: its softmax is all zero, as
// attention gives for a query that may see no key. A row holding NaN or +infinity is NaN
// throughout; other rows are not touched.

// The row maximum is subtracted first, so that no exponential overflows and one of them is 1
// (Blanchard, Higham and Higham, "Accurately computing the log-sum-exp and softmax functions",
// 2021, algorithm 4.1). The difference is divided by the temperature, not each logit: equal logits
// stay exactly equal, and no temperature, however small, overflows.
template <class T>
void softmax_row(std::span<const T> logits, std::span<T> weights, double temperature = 1);

// ln s_i = (z_i - z_m) / t - ln(1 + sum_{j != m} exp((z_j - z_m) / t)), z_m the row maximum. The
// weight next to 1 of a saturated row keeps its distance from it: at [100, 200, 300] in float64 the
// last logarithm is -3.7e-44, not 0. All -infinity where the softmax is all zero.
template <class T>
void log_softmax_row(std::span<const T> logits, std::span<T> log_weights, double temperature = 1);

// The formula taken literally, every operation rounded to T: to show what it does, never to be
// used. exp overflows above 88.72 in float32 and bfloat16, 709.78 in float64 and 11.09 in float16;
// the quotient of the infinities is NaN.
template <class T>
void naive_softmax_row(std::span<const T> logits, std::span<T> weights, double temperature = 1);

}  // namespace attnlab
