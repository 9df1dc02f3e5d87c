#pragma once

#include <string_view>

#include "attnlab/core/tensor.h"

namespace attnlab {

// What a decoder keeps of the steps before: their keys [batch, kv_heads, p, d_k] and values
// [batch, kv_heads, p, d_v], which come before those of the present step.
template <class T>
struct Past {
  Tensor<T> k, v;
};

// [batch, kv_heads, p + m, d]: `past` [batch, kv_heads, p, d] before `current`
// [batch, kv_heads, m, d]. `name` is the option to blame when the shapes do not agree.
template <class T>
Tensor<T> append_keys(const Tensor<T>& past, const Tensor<T>& current, std::string_view name);

// The way back: keys [first, first + count) of `all` [batch, kv_heads, m, d].
template <class T>
Tensor<T> keys_of(const Tensor<T>& all, Index first, Index count);

}  // namespace attnlab
