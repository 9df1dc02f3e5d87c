#pragma once

#include <string>
#include <vector>

#include "attnlab/core/describe.h"
#include "render/style.h"

namespace attnlab {

// "[2, 5, 5] float32"
std::string shape_text(const AnyTensor& matrix);

// One line each: name, value, unit; the values stand under each other.
std::string scalar_block(const std::vector<ResultRef>& scalars, const Style& style);

}  // namespace attnlab
