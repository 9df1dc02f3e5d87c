#pragma once

#include "attnlab/core/dtype.h"

namespace attnlab {

// Queries [first, first + rows) of one head: what a kernel computes at once.
struct RowBlock {
  Index b = 0;
  Index h = 0;
  Index first = 0;
  Index rows = 0;
};

}  // namespace attnlab
