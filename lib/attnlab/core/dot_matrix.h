#pragma once

#include <cstddef>
#include <span>

namespace attnlab {

// The dot products of every row of a [rows of a, length] with every row of b [rows of b, length],
// in float64: row i of a with row j of b at out[i * stride + j]. a holds float32 values, widened
// before, since each is used many times.
//
// A sum is of runs of kDotRun products, each run in order and the runs in order. The product of two
// float32 is exact in float64, so that fused multiply-adds round no differently: the bits are the
// same for every target of vectors, and for any split of the rows.
inline constexpr std::size_t kDotRun = 64;
void dot_matrix(std::span<const double> a, std::span<const float> b, std::size_t length,
                std::span<double> out, std::size_t stride);

}  // namespace attnlab
