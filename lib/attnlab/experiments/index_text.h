#pragma once

#include <string>

#include "attnlab/core/tensor.h"

namespace attnlab {

// "[0, 2, 1]" of the i-th element in row-major order.
std::string index_text(const Shape& shape, Index i);

}  // namespace attnlab
