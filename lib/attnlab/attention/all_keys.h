#pragma once

#include <optional>

#include "attnlab/attention/multi_head.h"

namespace attnlab {

// The mask of a layer with `own` keys of its own over all its keys, in the order of AllKeys.
class MaskOfAll {
 public:
  MaskOfAll(const Mask& mask, Index own) : mask_(mask) {
    if (own > 0) open_ = mask.with_open_keys(own);
  }
  const Mask& mask() const { return open_ ? *open_ : mask_; }

 private:
  const Mask& mask_;
  std::optional<Mask> open_;
};

// The keys, or the values, that a layer attends to: those of its own, those of a past, then the
// current ones [batch, kv_heads, m, d]. Its own are first, so that causal masks leave the queries
// one range of keys. Nothing is copied where the current ones are all there are.
template <class T>
class AllKeys {
 public:
  // `bias` [kv_heads d] is bias_k or bias_v, where the layer has it.
  AllKeys(const std::optional<Tensor<T>>& bias, bool add_zero_attn, const Tensor<T>* past,
          const Tensor<T>& current)
      : current_(current),
        has_bias_(bias.has_value()),
        has_past_(past != nullptr),
        own_((bias ? 1 : 0) + (add_zero_attn ? 1 : 0)),
        past_(past != nullptr ? past->shape()[2] : 0) {
    if (before() == 0) return;
    const Shape& shape = current.shape();
    joined_ = Tensor<T>::uninitialized({shape[0], shape[1], before() + shape[2], shape[3]});
    for (Index i = 0; i < shape.matrices(); ++i) {
      auto rows = joined_->matrix(i);
      if (add_zero_attn) rows.row(own_ - 1).setZero();
      if (bias) {
        rows.row(0) = ConstMatrixMap<T>(bias->data(), shape[1], shape[3]).row(i % shape[1]);
      }
      if (past_ > 0) rows.middleRows(own_, past_) = past->matrix(i);
      rows.bottomRows(shape[2]) = current.matrix(i);
    }
  }

  // [batch, kv_heads, own + p + m, d]
  const Tensor<T>& all() const { return joined_ ? *joined_ : current_; }
  bool has_bias() const { return has_bias_; }
  bool has_past() const { return has_past_; }
  // How many stand before the current ones.
  Index before() const { return own_ + past_; }
  // Those of the past and the current ones.
  Tensor<T> present() const { return keys_of(all(), own_, all().shape()[2] - own_); }

  // Of the gradient of all, that of bias_k or bias_v in each batch entry [batch, kv_heads, 1, d],
  // that of the past, and that of the current ones.
  Tensor<T> bias_of(const Tensor<T>& gradient) const { return keys_of(gradient, 0, 1); }
  Tensor<T> past_of(const Tensor<T>& gradient) const { return keys_of(gradient, own_, past_); }
  Tensor<T> current_of(Tensor<T> gradient) const {
    if (!joined_) return gradient;
    return keys_of(gradient, before(), current_.shape()[2]);
  }

 private:
  const Tensor<T>& current_;
  bool has_bias_, has_past_;
  Index own_, past_;
  std::optional<Tensor<T>> joined_;
};

}  // namespace attnlab
