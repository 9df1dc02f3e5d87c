#include "attnlab/attention/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attnlab/attention/shifted_row.h"
#include "attnlab/core/tensor.h"

namespace attnlab {

template <class T>
void softmax_row(std::span<const T> logits, std::span<T> weights, double temperature) {
  using C = ComputeType<T>;
  const ShiftedRow<T> row(logits, temperature);
  if (row.kind() != RowKind::defined) {
    std::fill(weights.begin(), weights.end(), row.fill_value());
    return;
  }
  // In T's own type the exponentials wait in `weights`; in 16 bits they would be rounded there.
  constexpr bool kKeep = std::is_same_v<C, T>;
  double others = 0;  // before the 1 of the maximum, lest small ones vanish beside it
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const C e = std::exp(row[i]);
    if (i != row.argmax()) others += e;
    if constexpr (kKeep) weights[i] = e;
  }
  const C total = static_cast<C>(1 + others);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if constexpr (kKeep) {
      weights[i] /= total;
    } else {
      weights[i] = convert_element<T>(std::exp(row[i]) / total);
    }
  }
}

template <class T>
void log_softmax_row(std::span<const T> logits, std::span<T> log_weights, double temperature) {
  const ShiftedRow<T> row(logits, temperature);
  if (row.kind() != RowKind::defined) {
    const bool empty = row.kind() == RowKind::empty;
    std::fill(
        log_weights.begin(), log_weights.end(),
        empty ? convert_element<T>(-std::numeric_limits<float>::infinity()) : row.fill_value());
    return;
  }
  double others = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i != row.argmax()) others += std::exp(row[i]);
  }
  const double log_sum = std::log1p(others);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    log_weights[i] = convert_element<T>(static_cast<double>(row[i]) - log_sum);
  }
}

template <class T>
void naive_softmax_row(std::span<const T> logits, std::span<T> weights, double temperature) {
  using C = ComputeType<T>;
  const T divisor = convert_element<T>(temperature);
  T sum = T(0);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const T scaled = logits[i] / divisor;
    weights[i] = convert_element<T>(std::exp(convert_element<C>(scaled)));
    sum = sum + weights[i];
  }
  for (T& weight : weights) weight = weight / sum;
}

#define ATTNLAB_INSTANTIATE(T)                                                \
  template void softmax_row<T>(std::span<const T>, std::span<T>, double);     \
  template void log_softmax_row<T>(std::span<const T>, std::span<T>, double); \
  template void naive_softmax_row<T>(std::span<const T>, std::span<T>, double);
ATTNLAB_INSTANTIATE(Float16)
ATTNLAB_INSTANTIATE(BFloat16)
ATTNLAB_INSTANTIATE(float)
ATTNLAB_INSTANTIATE(double)
#undef ATTNLAB_INSTANTIATE

}  // namespace attnlab
