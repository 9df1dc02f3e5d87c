#include "attnlab/attention/softmax_jacobian.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attnlab/attention/ratio_row.h"
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
  RatioRow ratios;
  ratios.set_row(row);
  return ratios.metrics();
}

template <class T>
double softmax_largest_eigenvalue(const SoftmaxRow<T>& row) {
  RatioRow ratios;
  ratios.set_row(row);
  return ratios.largest_eigenvalue();
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
