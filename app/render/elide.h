#pragma once

#include <algorithm>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Stands for what is left out between the first and the last.
inline constexpr Index kGap = -1;

// 0 .. count-1, of which at most `kept` are left: the first half, kGap, the last half.
inline std::vector<Index> elided(Index count, Index kept) {
  std::vector<Index> out;
  if (count <= kept) {
    for (Index i = 0; i < count; ++i) out.push_back(i);
    return out;
  }
  const Index tail = std::max<Index>(kept, 0) / 2;
  for (Index i = 0; i < kept - tail; ++i) out.push_back(i);
  out.push_back(kGap);
  for (Index i = count - tail; i < count; ++i) out.push_back(i);
  return out;
}

// The matrices over the last two axes of `shape` by number, at most `kept` of every axis before
// them, with one kGap wherever some are left out.
inline std::vector<Index> elided_matrices(const Shape& shape, Index kept) {
  std::vector<Index> shown = {0};
  for (int axis = 0; axis < shape.rank() - 2; ++axis) {
    std::vector<Index> next;
    for (const Index outer : shown) {
      if (outer == kGap) {
        next.push_back(kGap);
        continue;
      }
      for (const Index i : elided(shape[axis], kept)) {
        next.push_back(i == kGap ? kGap : outer * shape[axis] + i);
      }
    }
    shown = std::move(next);
  }
  return shown;
}

}  // namespace attnlab
