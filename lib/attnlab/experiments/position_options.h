#pragma once

#include <optional>
#include <tuple>
#include <utility>

#include "attnlab/attention/mask.h"
#include "attnlab/attention/rotary.h"
#include "attnlab/core/describe.h"

namespace attnlab {

// How the scores come to know where queries and keys stand.
struct PositionOptions {
  std::optional<double> rope_theta;
  bool alibi = false;

  // Whether there is anything that a position means.
  bool any() const { return rope_theta || alibi; }

  static constexpr auto fields() {
    using O = PositionOptions;
    return std::tuple(
        field("rope_theta", &O::rope_theta,
              "rotate queries and keys by their positions (RoPE), the halves of a head in pairs as "
              "in Llama; THETA is the base of the frequencies, often 10000. Query i stands at i + "
              "offset, key j at j; keys of a past are taken as rotated, and present_k is",
              {.unit = "THETA", .range = at_least(1.0)}),
        field("alibi", &O::alibi,
              "add -slope |i + offset - j| to the scores (ALiBi), the slope of head h being "
              "2^(-8 (h + 1) / heads)"));
  }
};

// None without a rope_theta. Queries stand where the mask's diagonal puts them, keys at their
// places among all, of which the first `past` are rotated already.
Rotations rotations_of(const PositionOptions& options, const Mask& mask, Index past);

// The tensor rotated, or as it is without a rotation; and the way back for its gradient.
template <class T>
Tensor<T> rotated(Tensor<T> x, const std::optional<Rotary>& rotary, Index threads) {
  return rotary ? rotate(std::move(x), *rotary, threads) : std::move(x);
}
template <class T>
Tensor<T> rotated_back(Tensor<T> grad, const std::optional<Rotary>& rotary, Index threads) {
  return rotary ? rotate_back(std::move(grad), *rotary, threads) : std::move(grad);
}

}  // namespace attnlab
