#pragma once

#include <cstdint>
#include <span>

#include "attnlab/core/dtype.h"

namespace attnlab {

// Dropout (Srivastava et al., 2014; after the softmax in Vaswani et al., 2017, section 5.4) of the
// weights of one row from key `first_key` on: multiplied by 0 with probability `share`, divided by
// 1 - share otherwise. `row_index` counts rows over batch, heads and queries; a weight's fate
// depends on the seed, that index and its key alone.
template <class T>
void drop_weights(std::span<T> weights, Index first_key, Index row_index, double share,
                  std::uint64_t seed);

}  // namespace attnlab
