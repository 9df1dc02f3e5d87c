#include "attnlab/attention/softmax_jacobian.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attnlab/attention/shifted_row.h"
#include "attnlab/attention/softmax.h"

namespace attnlab {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Calls f(o) with each weight but the largest.
template <class T, class F>
void for_each_other(const SoftmaxRow<T>& row, const F& f) {
  const auto weights = row.weights();
  const auto m = static_cast<std::size_t>(row.argmax());
  for (std::size_t i = 0; i < m; ++i) f(static_cast<double>(weights[i]));
  for (std::size_t i = m + 1; i < weights.size(); ++i) f(static_cast<double>(weights[i]));
}

}  // namespace

template <class T>
void SoftmaxRow<T>::set_logits(std::span<const T> logits, double temperature) {
  const ShiftedRow<T> shifted(logits, temperature);
  weights_.resize(logits.size());
  log_ratios_.resize(logits.size());
  argmax_ = static_cast<Index>(shifted.argmax());
  if (shifted.kind() != RowKind::defined) {
    const bool empty = shifted.kind() == RowKind::empty;
    std::fill(weights_.begin(), weights_.end(), shifted.fill_value());
    std::fill(log_ratios_.begin(), log_ratios_.end(),
              empty ? -std::numeric_limits<T>::infinity() : shifted.fill_value());
    rest_ = log_sum_ = empty ? 0 : kNaN;
    return;
  }
  double others = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    log_ratios_[i] = shifted[i];
    weights_[i] = std::exp(log_ratios_[i]);
    if (i != shifted.argmax()) others += weights_[i];
  }
  const T total = static_cast<T>(1 + others);
  for (T& weight : weights_) weight /= total;
  log_sum_ = std::log1p(others);
  find_rest();
}

template <class T>
void SoftmaxRow<T>::set_weights(std::span<const T> weights) {
  weights_.assign(weights.begin(), weights.end());
  log_ratios_.resize(weights.size());
  if (std::any_of(weights.begin(), weights.end(), [](T s) { return std::isnan(s); })) {
    std::fill(weights_.begin(), weights_.end(), std::numeric_limits<T>::quiet_NaN());
    std::fill(log_ratios_.begin(), log_ratios_.end(), std::numeric_limits<T>::quiet_NaN());
    argmax_ = 0;
    rest_ = log_sum_ = kNaN;
    return;
  }
  argmax_ = std::max_element(weights.begin(), weights.end()) - weights.begin();
  find_rest();
  const T largest = weights.empty() ? T(0) : weights_[static_cast<std::size_t>(argmax_)];
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    log_ratios_[i] =
        largest == 0 ? -std::numeric_limits<T>::infinity() : std::log(weights_[i] / largest);
  }
  log_sum_ = largest == 0 ? 0 : std::log1p(rest_ / static_cast<double>(largest));
}

template <class T>
void SoftmaxRow<T>::find_rest() {
  rest_ = 0;
  for_each_other(*this, [&](double o) { rest_ += o; });
}

template <class T>
SoftmaxMetrics softmax_metrics(const SoftmaxRow<T>& row) {
  if (row.size() == 0) return {};
  const auto weights = row.weights();
  const auto log_ratios = row.log_ratios();
  const auto m = static_cast<std::size_t>(row.argmax());
  const double s_m = weights[m];
  const double r = row.rest();
  // Squares of the smallest float64 numbers would vanish; scaled up they do not.
  const double scale = r < 0x1p-500 ? 0x1p600 : 1;
  double surprise = 0, diagonal = 0, squares = 0, scaled_diagonal_squares = 0, scaled_squares = 0,
         fourths = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i == m) continue;
    const double o = weights[i];
    const double scaled = o * scale;
    const double variance = o * (1 - o);
    const double scaled_variance = scaled * (1 - o);
    // 0 ln 0 = 0
    surprise += o == 0 ? 0 : -o * static_cast<double>(log_ratios[i]);
    diagonal += variance;
    squares += o * o;
    fourths += scaled * scaled * (o * o);
    scaled_diagonal_squares += scaled_variance * scaled_variance;
    scaled_squares += scaled * scaled;
  }
  const double scaled_corner = s_m * (r * scale);
  const double scaled_off_diagonal =
      2 * s_m * s_m * scaled_squares + std::max(0.0, scaled_squares * squares - fourths);
  const double scaled_frobenius =
      std::sqrt(scaled_corner * scaled_corner + scaled_diagonal_squares + scaled_off_diagonal);
  SoftmaxMetrics metrics;
  metrics.max_weight = s_m;
  metrics.sum_squares = s_m * s_m + squares;
  metrics.entropy = row.log_sum() + surprise;
  metrics.trace = s_m * r + diagonal;
  metrics.frobenius = scaled_frobenius / scale;
  metrics.frobenius_squared = metrics.frobenius * metrics.frobenius;
  return metrics;
}

// The eigenvalues of J = diag(s) - s s^T other than 0 solve sum_i s_i / (s_i - x) = 0 (the secular
// equation of a rank-one update, with sum s_i = 1), the largest between the two largest weights:
//
//     sum_o o / (x - o) = s_m / (s_m - x)        for x in (max o, s_m)
//
// The reciprocal of the left side is concave in x (a parallel sum of the lines (x - o) / o) and
// that of the right is a line, so that Newton's method on
//
//     k(x) = 1 / sum_o (o / (x - o)) + x / s_m - 1
//
// climbs to the root from any point below it without a safeguard. With two weights k is a line and
// the first step ends at 2 s_1 s_2. The slope x k' is at least 1 at the root: rounding errors of k
// reach x undiminished but never magnified.
template <class T>
double softmax_largest_eigenvalue(const SoftmaxRow<T>& row) {
  const double r = row.rest();
  if (!(r > 0)) return r;  // one weight only, or none; NaN stays NaN
  const double s_m = row.weights()[static_cast<std::size_t>(row.argmax())];
  double o_max = 0;
  for_each_other(row, [&](double o) { o_max = std::max(o_max, o); });
  // J_mm = s_m r is a lower bound too (Rayleigh), half the upper bound 2 s_m r (Gershgorin).
  double x = std::max(o_max, s_m * r);
  constexpr int kNeverReached = 100;
  for (int iteration = 0; iteration < kNeverReached; ++iteration) {
    double reciprocal = 0;     // 1 / sum_o o / (x - o)
    double slope = x / o_max;  // x times its derivative: at the pole, at most this
    if (x > o_max) {
      double sum = 0, derivative = 0;
      for_each_other(row, [&](double o) {
        const double term = o / (x - o);
        sum += term;
        derivative += term * (x / (x - o));
      });
      reciprocal = 1 / sum;
      slope = derivative / sum / sum;
    }
    const double k = reciprocal + (x / s_m - 1);
    const double step = -k / (slope + x / s_m);  // relative to x
    if (!(step > std::numeric_limits<double>::epsilon())) break;
    x = std::min(x + x * step, s_m);
  }
  return x;
}

template <class T>
void softmax_jacobian(const SoftmaxRow<T>& row, std::span<T> jacobian) {
  const auto weights = row.weights();
  const std::size_t n = weights.size();
  const auto m = static_cast<std::size_t>(row.argmax());
  for (std::size_t i = 0; i < n; ++i) {
    const double s_i = weights[i];
    const auto line = jacobian.subspan(i * n, n);
    // Subtracted from 0, so that no entry is -0.
    for (std::size_t j = 0; j < n; ++j) {
      line[j] = static_cast<T>(0.0 - s_i * static_cast<double>(weights[j]));
    }
    line[i] = static_cast<T>(s_i * (i == m ? row.rest() : 1 - s_i));
  }
}

template <class T>
void softmax_jacobian_product(const SoftmaxRow<T>& row, std::span<const T> v,
                              std::span<T> product) {
  softmax_jacobian_product(row.weights(), static_cast<std::size_t>(row.argmax()), v, product);
}

template <class T>
void softmax_jacobian_product(std::span<const T> weights, std::size_t argmax, std::span<const T> v,
                              std::span<T> product) {
  if (weights.empty()) return;
  const double v_m = v[argmax];
  double mean = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    mean += static_cast<double>(weights[i]) * (static_cast<double>(v[i]) - v_m);
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double g = static_cast<double>(v[i]) - v_m;
    product[i] = static_cast<T>(static_cast<double>(weights[i]) * (g - mean));
  }
}

template <class T>
void softmax_central_differences(const SoftmaxRow<T>& row, Index j, std::span<double> column,
                                 double h) {
  std::vector<double> x(row.log_ratios().begin(), row.log_ratios().end());
  std::vector<double> below(x.size());
  double& x_j = x[static_cast<std::size_t>(j)];
  const double centre = x_j;
  x_j = centre + h;
  const double upper = x_j;
  softmax_row<double>(x, column);
  x_j = centre - h;
  softmax_row<double>(x, below);
  // The step as it was taken, rounded: where it vanished, so did the weight.
  const double step = upper > x_j ? upper - x_j : 2 * h;
  for (std::size_t i = 0; i < x.size(); ++i) column[i] = (column[i] - below[i]) / step;
}

#define ATTNLAB_INSTANTIATE(T)                                                                   \
  template class SoftmaxRow<T>;                                                                  \
  template SoftmaxMetrics softmax_metrics<T>(const SoftmaxRow<T>&);                              \
  template double softmax_largest_eigenvalue<T>(const SoftmaxRow<T>&);                           \
  template void softmax_jacobian<T>(const SoftmaxRow<T>&, std::span<T>);                         \
  template void softmax_jacobian_product<T>(const SoftmaxRow<T>&, std::span<const T>,            \
                                            std::span<T>);                                       \
  template void softmax_jacobian_product<T>(std::span<const T>, std::size_t, std::span<const T>, \
                                            std::span<T>);                                       \
  template void softmax_central_differences<T>(const SoftmaxRow<T>&, Index, std::span<double>,   \
                                               double);
ATTNLAB_INSTANTIATE(float)
ATTNLAB_INSTANTIATE(double)
#undef ATTNLAB_INSTANTIATE

}  // namespace attnlab
