#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attnlab/attention/ratio_sums.h"
#include "attnlab/attention/softmax_jacobian.h"
#include "attnlab/core/buffer.h"

namespace attnlab {

// One softmax row in float64 by the ratios of its weights to the largest, rho_i = s_i / s_m, from
// which its metrics come in few passes and without dividing by the sum. What of a row's derivative
// is small when it saturates is kept: s_m = 1 / (1 + sum rho) may be 1, but sum rho is not 0.
//
// The buffer is reused when a row is set again. A row without a finite logit has metrics 0, one
// that holds NaN or +infinity metrics NaN.
class RatioRow {
 public:
  // Of the logits factor * scores.
  void set_logits(std::span<const double> scores, double factor = 1);
  template <class T>
  void set_row(const SoftmaxRow<T>& row);

  // m, the first of the largest.
  std::size_t argmax() const { return argmax_; }
  // s_m
  double max_weight() const { return max_weight_; }
  // 1 - s_m, as the sum of the others.
  double rest() const { return rest_; }
  // 1 / s_m, as 1 and the sum of the other ratios.
  double total() const { return 1 + sums_.ratios; }
  // Least and largest logit, of a row of finite logits.
  const LogitRange& range() const { return range_; }
  // The largest logit less the second; 0 for one logit.
  double gap() const { return size_ > 1 ? 0 - sums_.second : 0; }
  // The ratios of the others that are at most `limit`, in the front of `memory`, which grows to
  // what is needed.
  std::span<double> small_ratios(double limit, std::vector<double>& memory);

  SoftmaxMetrics metrics() const;
  // The largest eigenvalue of the Jacobian, see softmax_largest_eigenvalue.
  double largest_eigenvalue() const;

 private:
  void reserve();
  double* ratios() const { return static_cast<double*>(memory_.data()); }
  double* log_ratios() const { return ratios() + padded_length(size_); }
  void set_all(double value);

  Buffer memory_;  // the ratios and their logarithms
  std::size_t size_ = 0, argmax_ = 0;
  LogitRange range_;
  RatioSums sums_;
  double max_weight_ = 0, rest_ = 0, log_sum_ = 0;
};

}  // namespace attnlab
