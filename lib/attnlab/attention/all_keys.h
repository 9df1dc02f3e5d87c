#pragma once

#include <optional>

#include "attnlab/attention/past.h"

namespace attnlab {

// The keys, or the values, that a layer attends to: those of a past, then the current ones
// [batch, kv_heads, m, d]. Nothing is copied where the current ones are all there are.
template <class T>
class AllKeys {
 public:
  AllKeys(const Tensor<T>* past, const Tensor<T>& current) : current_(current) {
    if (past == nullptr) return;
    past_ = past->shape()[2];
    joined_ = append_keys(*past, current, "past");
  }

  // [batch, kv_heads, p + m, d]
  const Tensor<T>& all() const { return joined_ ? *joined_ : current_; }
  // How many stand before the current ones.
  Index before() const { return past_; }

  // Of the gradient of all, that of the past, and that of the current ones.
  Tensor<T> past_of(const Tensor<T>& gradient) const { return keys_of(gradient, 0, past_); }
  Tensor<T> current_of(Tensor<T> gradient) const {
    if (!joined_) return gradient;
    return keys_of(gradient, before(), current_.shape()[2]);
  }

 private:
  const Tensor<T>& current_;
  Index past_ = 0;
  std::optional<Tensor<T>> joined_;
};

}  // namespace attnlab
