#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace attnlab {

// The dot product of two vectors of one length in float64, summed in 16 interleaved parts. The
// product of two float32 is exact in float64, and the order of the sums is fixed: the bits are the
// same with every compiler, whether it fuses multiply and add or not.
inline double dot(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kParts = 16;
  std::array<double, kParts> sums{};
  std::size_t i = 0;
  for (; i + kParts <= a.size(); i += kParts) {
    for (std::size_t p = 0; p < kParts; ++p) {
      sums[p] += static_cast<double>(a[i + p]) * static_cast<double>(b[i + p]);
    }
  }
  for (std::size_t p = 0; i < a.size(); ++i, ++p) {
    sums[p] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  for (std::size_t half = kParts / 2; half > 0; half /= 2) {
    for (std::size_t p = 0; p < half; ++p) sums[p] += sums[p + half];
  }
  return sums[0];
}

}  // namespace attnlab
