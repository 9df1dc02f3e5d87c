#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attnlab/core/request.h"
#include "attnlab/experiments/gradient_check.h"
#include "attnlab/experiments/multihead.h"

namespace attnlab {

// The matrices that check_layer needs of a layer.
Request checked_matrices();

// The backward pass of a layer against central differences of its forward pass, one row each for
// the inputs, weights and biases it has, and its past. The cotangent is standard normal, drawn from
// the seed. The backward pass runs in the dtype of the layer, the differences always in float64.
//
// The gradient of b_k is 0 without a softcap, a past, a norm, a rotation or keys of the layer's
// own, a sum of terms that cancel: its errors are allowed for as if it were as large as that of
// w_k, which is of the same terms.
std::vector<GradientCheck> check_layer(const MultiheadResult& layer, double tolerance,
                                       const RunOptions& run, std::vector<std::string>& notes);

}  // namespace attnlab
