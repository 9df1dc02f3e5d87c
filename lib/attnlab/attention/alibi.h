#pragma once

#include <vector>

#include "attnlab/core/dtype.h"

namespace attnlab {

// The slopes of ALiBi for so many heads (Press, Smith and Lewis, "Train Short, Test Long: Attention
// with Linear Biases Enables Input Length Extrapolation", 2022, section 3): 2^(-8 (h + 1) / heads)
// for head h where heads is a power of two. Where it is not, the authors' rule: the slopes of the
// next lower power of two, then every other one of the next higher, from the first on.
std::vector<double> alibi_slopes(Index heads);

}  // namespace attnlab
