#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attnlab/stats/scaling.h"

namespace attnlab {

// Which gradient.
enum class Of { q, k, v };
inline constexpr std::size_t kGradients = 3;

// Of each row of a point under one scaling, the mean square of an element of each gradient.
struct GradientSample {
  std::array<std::vector<double>, kGradients> mean_squares;
};

struct GradientState {
  std::vector<GradientSample> samples;

  void merge(const GradientState& other);
  std::uint64_t trials() const { return samples[0].mean_squares[0].size(); }
  std::vector<double> values() const;
  void set_values(std::span<const double> values);
};

// One query q [d], keys K [n, d], values V [n, d] and the cotangent dO [d] of its output:
//   p = softmax(a q K^T), dP_j = dO.v_j, dS = p o (G - sum p G), G = dP - dP[argmax p],
//   dq = a dS K, dk_j = a dS_j q, dv_j = p_j dO
// (Theory H, in the form that survives saturation). `scores` [n] are q.k_j, `grad_weights` [n]
// dP_j.
class RowGradients {
 public:
  // The mean squares over the elements of dq, of dK and of dV.
  std::array<double, kGradients> mean_squares(double scale, std::span<const float> q,
                                              std::span<const float> keys,
                                              std::span<const double> scores,
                                              std::span<const double> grad_weights,
                                              double grad_output_square);

 private:
  std::vector<double> logits_, grad_scores_, grad_q_;
};

}  // namespace attnlab
