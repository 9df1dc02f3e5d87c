#pragma once

#include <optional>

#include "attnlab/attention/scaled_dot_product.h"

namespace attnlab {

// The products of a layer with its weights, over the threads that the settings name, by `multiply`
// or, where their kernel is full, by Eigen. The bits do not depend on the threads. A tensor of
// higher rank stands where a matrix does as the matrix of all its rows, [.., columns].

// x W + b in heads, [batch, heads, n, width]: head h has columns h width.. of the product.
// x [batch, n, in], W [in, heads width], b [heads width].
template <class T>
Tensor<T> project_heads(const Tensor<T>& x, const Tensor<T>& w, const std::optional<Tensor<T>>& b,
                        Index heads, const AttentionSettings& settings);

// x W + b, [batch, n, out]. x [batch, n, in], W [in, out], b [out].
template <class T>
Tensor<T> project(const Tensor<T>& x, const Tensor<T>& w, const std::optional<Tensor<T>>& b,
                  const AttentionSettings& settings);

// W^T [columns, rows] of W [rows, columns], of rank 2 or more.
template <class T>
Tensor<T> transposed(const Tensor<T>& w, const AttentionSettings& settings);

}  // namespace attnlab
