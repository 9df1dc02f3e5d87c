#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>

#include "experiments/wrong_attention.h"

// Rotary positions over complex numbers, sharing nothing with the library.

namespace attnlab {

// Rows of [batch, heads, rows, d] from `from` on turned to where `position` says: the halves are
// real and imaginary part.
using Position = std::function<double(std::size_t b, std::size_t row)>;
inline Numbers turned(const Numbers& x, std::size_t heads, std::size_t rows, std::size_t d,
                      double theta, const Position& position, std::size_t from = 0) {
  Numbers result = x;
  for (std::size_t r = 0; r < x.size() / d; ++r) {
    if (r % rows < from) continue;
    for (std::size_t c = 0; c < d / 2; ++c) {
      const double angle = position(r / rows / heads, r % rows) /
                           std::pow(theta, 2 * static_cast<double>(c) / static_cast<double>(d));
      const auto z = std::complex(x[r * d + c], x[r * d + c + d / 2]) * std::polar(1.0, angle);
      result[r * d + c] = z.real();
      result[r * d + c + d / 2] = z.imag();
    }
  }
  return result;
}

// The call with q and k rotated: queries at offset(b) + i, keys from `past` on at their index.
inline reference::Call rotated_call(reference::Call c, double theta,
                                    const std::function<double(std::size_t)>& offset,
                                    std::size_t past = 0) {
  c.q = turned(c.q, c.heads, c.n, c.d_k, theta,
               [&](std::size_t b, std::size_t i) { return offset(b) + static_cast<double>(i); });
  c.k = turned(
      c.k, c.kv_heads, c.m, c.d_k, theta,
      [](std::size_t, std::size_t j) { return static_cast<double>(j); }, past);
  return c;
}

}  // namespace attnlab
