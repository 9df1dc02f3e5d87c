#pragma once

#include <cstddef>
#include <span>

namespace attnlab {

// The dot products of many vectors, each with the bits of dot. The product of two float32 is exact
// in float64, so that fused multiply-adds round no differently: every target of vectors gives the
// same.

// out [rows]: row i of a [rows, length] with row i of b [rows, length].
void dot_of_rows(std::span<const float> a, std::span<const float> b, std::size_t length,
                 std::span<double> out);

// out [rows]: a [length] with each row of b [rows, length].
void dot_with_rows(std::span<const float> a, std::span<const float> b, std::span<double> out);

}  // namespace attnlab
