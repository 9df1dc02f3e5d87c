#pragma once

#include <algorithm>
#include <span>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Whether a tensor of an earlier result can be written over as one of these axes. One that was
// moved from has its shape still, and no elements.
template <class T>
bool has_room(const Tensor<T>& tensor, std::span<const Index> axes) {
  return tensor.data() != nullptr && std::ranges::equal(tensor.shape().axes(), axes);
}

}  // namespace attnlab
