#pragma once

#include <cmath>
#include <vector>

#include "attention/reference_case.h"
#include "attnlab/core/random.h"

// How far float32 kernels are from float64 on inputs as people have them.

namespace attnlab::test {

// Normal entries, scaled as in the paper.
template <class T>
DrawnCase<T> normal_case(Index n, Index m, Index d) {
  DrawnCase<T> drawn =
      draw_case<T>({.heads = 2, .kv_heads = 2, .n = n, .m = m, .d_k = d, .d_v = d});
  drawn.mask = Mask(1, 2, n, m);
  drawn.settings = {};
  drawn.settings.scale = 1 / std::sqrt(static_cast<double>(d));
  std::uint64_t seed = 1;
  for (Tensor<T>* tensor : {&drawn.q, &drawn.k, &drawn.v}) {
    std::vector<float> normals(static_cast<std::size_t>(tensor->size()));
    fill_normal(normals, ++seed, Stream::input_q);
    for (std::size_t i = 0; i < normals.size(); ++i) tensor->data()[i] = static_cast<T>(normals[i]);
  }
  return drawn;
}

// The sum over all elements of the squares that they are off.
inline double squares_off(const Tensor<float>& got, const Tensor<double>& truth) {
  double squares = 0;
  for (Index i = 0; i < got.size(); ++i) {
    const double off = static_cast<double>(got[i]) - truth[i];
    squares += off * off;
  }
  return squares;
}

}  // namespace attnlab::test
