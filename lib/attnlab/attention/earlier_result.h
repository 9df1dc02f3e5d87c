#pragma once

#include "attnlab/attention/multi_head.h"
#include "attnlab/attention/scaled_dot_product.h"
#include "attnlab/attention/scaled_dot_product_backward.h"

namespace attnlab {

// The calls of attention into the result of an earlier one, or an empty one. Its tensors are
// written over where they have the right shape; what it lacks is allocated, what is not wanted
// given back. Calls of one shape so find their memory warm: the system's first touch of the pages
// of [heads, n, m] weights can take as long as computing them. The values are those that a new
// result has. It must hold none of the inputs, and what is in it after an error is left open.

template <class T>
void scaled_dot_product(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                        const Mask& mask, const AttentionSettings& settings, const Request& want,
                        AttentionResult<T>& result);

template <class T>
void scaled_dot_product_backward(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                 const Tensor<T>& grad_output, const Mask& mask,
                                 const AttentionSettings& settings, const Request& want,
                                 AttentionGradients<T>& gradients);

// Of a layer it is `attention` that is written over, with its matrices by far the largest; all else
// is new.
template <class T>
void multi_head(const Tensor<T>& query, const Tensor<T>& key, const Tensor<T>& value,
                const MultiHeadParams<T>& params, const Mask& mask,
                const AttentionSettings& settings, const Request& want, const Past<T>* past,
                MultiHeadResult<T>& result);

}  // namespace attnlab
