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

// Rows of weights that are all 0: they see no key, or scores of -infinity only.
struct ZeroRows {
  Index empty = 0;
  Index overflowed = 0;
};

}  // namespace attnlab
