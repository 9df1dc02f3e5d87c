#pragma once

#include <cmath>

namespace attnlab {

// C tanh(s / C)
template <class T>
T softcap(T s, T cap) {
  return cap * std::tanh(s / cap);
}

// Its derivative, 1 - tanh(s / C)^2, as 1 / cosh^2: where tanh rounds to 1, digits remain.
template <class T>
T softcap_slope(T s, T cap) {
  const T e = std::exp(-2 * std::abs(s / cap));
  return 4 * e / ((1 + e) * (1 + e));
}

}  // namespace attnlab
