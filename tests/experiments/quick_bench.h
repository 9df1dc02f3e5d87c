#pragma once

#include "attnlab/experiments/bench.h"

namespace attnlab::test {

// Rows as fast as they can be had.
inline BenchOptions quick_bench() {
  BenchOptions options;
  options.n = {16};
  options.d_k = {4};
  options.heads = 2;
  options.repeat = 3;
  options.min_time = 0;
  options.threads = {1};
  return options;
}

}  // namespace attnlab::test
