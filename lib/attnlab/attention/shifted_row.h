#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

#include "attnlab/core/tensor.h"

namespace attnlab {

// What softmax of T is computed in: float32 for the 16-bit types.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, double>, double, float>;

enum class RowKind {
  defined,  // a finite maximum
  empty,    // no logit above -infinity: the softmax is 0
  invalid,  // NaN or +infinity among the logits: the softmax is NaN
};

// A view of n logits z less their maximum z_m, at temperature t: (z_i - z_m) / t.
template <class T>
class ShiftedRow {
 public:
  using C = ComputeType<T>;

  ShiftedRow(std::span<const T> logits, double temperature)
      : logits_(logits), temperature_(temperature) {
    bool nan = false;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const C z = convert_element<C>(logits[i]);
      nan = nan || std::isnan(z);
      if (z > maximum_) {
        maximum_ = z;
        argmax_ = i;
      }
    }
    if (nan || maximum_ == std::numeric_limits<C>::infinity()) {
      kind_ = RowKind::invalid;
    } else if (maximum_ == -std::numeric_limits<C>::infinity()) {
      kind_ = RowKind::empty;
    }
  }

  RowKind kind() const { return kind_; }
  // The first of the largest logits.
  std::size_t argmax() const { return argmax_; }
  // The weight of every entry of a row that is not defined.
  T fill_value() const {
    return kind_ == RowKind::empty ? T(0)
                                   : convert_element<T>(std::numeric_limits<float>::quiet_NaN());
  }

  // Of a defined row; at most 0.
  C operator[](std::size_t i) const {
    const C z = convert_element<C>(logits_[i]);
    if (temperature_ == 1) return z - maximum_;
    const double difference = static_cast<double>(z) - static_cast<double>(maximum_);
    if (std::isinf(difference) && !std::isinf(z)) {
      // Only the difference overflows: at a high temperature it still counts.
      return static_cast<C>(z / temperature_ - maximum_ / temperature_);
    }
    return static_cast<C>(difference / temperature_);
  }

 private:
  std::span<const T> logits_;
  double temperature_;
  C maximum_ = -std::numeric_limits<C>::infinity();
  std::size_t argmax_ = 0;
  RowKind kind_ = RowKind::defined;
};

}  // namespace attnlab
