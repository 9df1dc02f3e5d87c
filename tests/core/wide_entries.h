#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "attnlab/core/random.h"

namespace attnlab::test {

// Entries of many magnitudes, so that every order of their sums has other bits.
inline std::vector<float> wide_entries(std::size_t count, Stream stream) {
  std::vector<float> values(count), powers(count);
  fill_normal(values, 4, stream, 0);
  fill_normal(powers, 4, stream, 1);
  for (std::size_t i = 0; i < count; ++i) values[i] *= std::exp2(10 * powers[i]);
  return values;
}

}  // namespace attnlab::test
