#pragma once

#include <cstdint>

namespace attnlab {

// Root mean squares of the gradients of scaled dot-product attention at initialisation, one query
// against n keys: Q of variance sigma_q^2, K of sigma_k^2, V of sigma_v^2 and a standard normal
// cotangent dO, all independent normals; scores a q.k, v = a^2 d sigma_q^2 sigma_k^2 and x = |q|^2
// / (d sigma_q^2). The expected squared norms are
//   dS  d_v sigma_v^2 E[JF2(v x)]
//   dV  d_v E[sum_p2(v x)]
//   dK  a^2 d_v sigma_v^2 d sigma_q^2 E[x JF2(v x)]
//   dQ  d_v sigma_v^2 {a^2 (d-1) sigma_k^2 E[JF2(v x)] + E[T(v x)/x] / (d sigma_q^2)}
// where JF2 and T are those of softmax_theory: across q the keys are independent of the scores,
// along it they are the scores.
struct GradientLaw {
  std::uint64_t keys = 1;
  double d_k = 1, d_v = 1;
  double scale = 1;  // a
  double sigma_q = 1, sigma_k = 1, sigma_v = 1;
};

struct GradientTheory {
  double logit_variance = 0;  // v
  // Expected squared norms of the gradients of one query's loss.
  double scores = 0, q = 0, k = 0, v = 0;
  // Root of the mean square of an element: of the row of n scores, the d_k of q, the n d_k of K,
  // the n d_v of V.
  double rms_scores = 0, rms_q = 0, rms_k = 0, rms_v = 0;
};

// Throws InputError unless keys, d_k and d_v are at least 1, scale is finite, and the sigmas are
// positive and finite.
GradientTheory gradient_theory(const GradientLaw& law);

}  // namespace attnlab
