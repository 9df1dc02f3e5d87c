#pragma once

#include "attnlab/core/dtype.h"

namespace attnlab {

// `threads`, or 1 where so few multiplications are not worth waking the others and waiting for
// them, which costs as much as some 300 thousand.
inline Index worthwhile_threads(double multiplications, Index threads) {
  return multiplications < 1e6 ? 1 : threads;
}

}  // namespace attnlab
