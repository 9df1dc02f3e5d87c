#pragma once

#include <string_view>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Root mean square layer normalisation (Zhang and Sennrich, "Root Mean Square Layer Normalization",
// 2019, equation 4) of each row of x [.., d], with one weight a column, w [d]:
//
//     x' = x r o w,   r = 1 / sqrt(mean(x^2) + eps)
//
// The calculation is in float64, rounded to T once. A row of NaN or infinities is NaN.
//
// Throws InputError (field `name`) when the weight is not as wide as x, and (field "qk_norm_eps")
// when eps is not above 0 and finite.
template <class T>
Tensor<T> rms_norm(const Tensor<T>& x, const Tensor<T>& weight, double eps, std::string_view name);

template <class T>
struct RmsNormGradients {
  Tensor<T> grad_x;       // [.., d]
  Tensor<T> grad_weight;  // [d]
};

// Its backward pass, of what has the gradient `grad` with respect to x', with g = grad o w:
//
//     grad_x      = r (g - x r^2 mean(g o x))
//     grad_weight = sum of the rows of grad o x r
//
// A row whose gradient is 0 throughout adds nothing, whatever is in x: that of a key or query which
// the mask hides altogether. Sums are in order, in float64.
template <class T>
RmsNormGradients<T> rms_norm_backward(const Tensor<T>& x, const Tensor<T>& weight, double eps,
                                      const Tensor<T>& grad);

}  // namespace attnlab
