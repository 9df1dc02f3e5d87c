#pragma once

#include <optional>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Where the rows of queries or keys stand, and how fast they turn.
struct Rotary {
  double theta = 10000;
  // Row i of batch entry b stands at position offsets[b] + i; one offset a batch entry, or one for
  // all.
  std::vector<Index> offsets{0};
  // Rows before this one stay as they are: keys of a past, which were rotated when they were new.
  Index from = 0;
};

// How the queries and the keys of one attention are rotated; none where they are not.
struct Rotations {
  std::optional<Rotary> queries, keys;
};

// Positions that rows may stand at, either way from 0. The angle of position p is off by |p| 2^-53
// at most times its frequency, which is 1 or less: below half a unit of float32 up to here.
inline constexpr Index kMostRotaryPosition = Index{1} << 28;

// Rotary position embedding (Su et al., "RoFormer: Enhanced Transformer with Rotary Position
// Embedding", 2021, equation 34), in the order of GPT-NeoX and Llama, which pairs the halves of a
// row: of x [batch, heads, n, d], for c < d / 2 and the position p of the row,
//
//     a = p theta^(-2 c / d)
//     x'[c]         = x[c] cos a - x[c + d / 2] sin a
//     x'[c + d / 2] = x[c + d / 2] cos a + x[c] sin a
//
// so that q'.k' of positions i and j depends on i - j alone. Angles and products are in float64,
// rounded to T once. NaN and infinities spread over their pair.
//
// Throws InputError (field "rope_theta") when d is odd, theta is below 1 or not finite, or a row
// stands beyond kMostRotaryPosition, and (field "offset") when the count of offsets is wrong.
template <class T>
Tensor<T> rotate(Tensor<T> x, const Rotary& rotary, Index threads = 1);

// Its transpose, which is its inverse: the gradient with respect to x of what has `grad` with
// respect to x'.
template <class T>
Tensor<T> rotate_back(Tensor<T> grad, const Rotary& rotary, Index threads = 1);

// What rotate asks of a tensor of this shape, checked without touching an element.
void require_rotary(const Shape& x, const Rotary& rotary);

}  // namespace attnlab
