#pragma once

#include <span>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// One softmax row s of n entries, kept so that nothing about its derivative is lost when it
// saturates. There s_m, the largest, is 1 to the last bit and 1 - s_m is 0, but the sum of the
// others is not; everything below is computed from them. T is float or double; sums are in float64.
//
// The buffers are reused when a row is set again. A row that is all zero (no finite logit) has
// metrics 0; one that is NaN has metrics NaN.
template <class T>
class SoftmaxRow {
 public:
  // softmax(logits / temperature), see softmax_row.
  void set_logits(std::span<const T> logits, double temperature = 1);
  // Weights as given: each at least 0, with the sum 1.
  void set_weights(std::span<const T> weights);

  Index size() const { return static_cast<Index>(weights_.size()); }
  std::span<const T> weights() const { return weights_; }
  // ln(s_i / s_m): the logits less their maximum, over the temperature.
  std::span<const T> log_ratios() const { return log_ratios_; }
  // m, the first of the largest weights.
  Index argmax() const { return argmax_; }
  // 1 - s_m, as the sum of the others.
  double rest() const { return rest_; }
  // -ln s_m
  double log_sum() const { return log_sum_; }

 private:
  void find_rest();

  std::vector<T> weights_, log_ratios_;
  Index argmax_ = 0;
  double rest_ = 0;
  double log_sum_ = 0;
};

// The numbers that say how saturated a row is. J is its Jacobian, J_ij = s_i (delta_ij - s_j).
struct SoftmaxMetrics {
  double max_weight = 0;         // s_m
  double sum_squares = 0;        // sum s_i^2
  double entropy = 0;            // -sum s_i ln s_i, nats
  double trace = 0;              // tr J = 1 - sum s_i^2
  double frobenius = 0;          // ||J||_F
  double frobenius_squared = 0;  // sum J_ij^2; 0 where it underflows float64
};

// Without cancellation: with o the weights but the largest and r their sum,
//     entropy = ln(1 + sum e^(z_j - z_m)) - sum o_j (z_j - z_m)
//     tr J = s_m r + r - sum o^2
//     ||J||_F^2 = s_m^2 r^2 + sum o^2 (1 + 2 s_m^2 + sum o^2) - 2 sum o^3
// which are exact where the short forms give 0: no o is above 1/2, so that the differences lose
// little. A RatioRow gives them of many rows without allocating.
template <class T>
SoftmaxMetrics softmax_metrics(const SoftmaxRow<T>& row);

// The largest eigenvalue of J, in [0, 1/2], to a few units in the last place however saturated the
// row is. One pass over most rows of many normal logits, two over the others.
template <class T>
double softmax_largest_eigenvalue(const SoftmaxRow<T>& row);

// J [n, n], row-major: s_i (1 - s_i) where i = j, -s_i s_j elsewhere. J_mm = s_m r.
template <class T>
void softmax_jacobian(const SoftmaxRow<T>& row, std::span<T> jacobian);

// J v for v [n], and v^T J, since J is symmetric: s o (g - sum s_i g_i) with g = v - v_m, in O(n).
// g_m = 0 leaves s_m out of the sum; the plain form s o (v - s.v) loses everything in saturation.
template <class T>
void softmax_jacobian_product(const SoftmaxRow<T>& row, std::span<const T> v, std::span<T> product);
// The same of weights that stand alone, `argmax` the index of the largest. `product` may be the
// memory of `v`.
template <class T>
void softmax_jacobian_product(std::span<const T> weights, std::size_t argmax, std::span<const T> v,
                              std::span<T> product);

// Column j of the Jacobian by central differences in float64: (softmax(x + h e_j) -
// softmax(x - h e_j)) / 2h at the row's log ratios x, from which softmax gives the same row.
template <class T>
void softmax_central_differences(const SoftmaxRow<T>& row, Index j, std::span<double> column,
                                 double h = 1e-5);

}  // namespace attnlab
