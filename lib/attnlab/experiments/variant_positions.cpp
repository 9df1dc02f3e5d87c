#include "attnlab/experiments/variant_positions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attnlab/attention/rotary.h"

namespace attnlab {
namespace {

// Neighbours 2 c and 2 c + 1 put where halves are paired.
Tensor<double> with_pairs_as_halves(const Tensor<double>& x, RotaryPairs pairs) {
  if (pairs == RotaryPairs::halves) return x;
  const Index d = x.shape()[3];
  Tensor<double> result = Tensor<double>::uninitialized(x.shape());
  for (Index at = 0; at < x.size(); at += d) {
    for (Index c = 0; c < d / 2; ++c) {
      result[at + c] = x[at + 2 * c];
      result[at + c + d / 2] = x[at + 2 * c + 1];
    }
  }
  return result;
}

Tensor<double> turned(Tensor<double> x, const Rotary& rotary, bool backwards) {
  return backwards ? rotate_back(std::move(x), rotary) : rotate(std::move(x), rotary);
}

}  // namespace

Tensor<double> turned_queries(const Tensor<double>& q, const VariantPositions& positions,
                              const Mask& mask, Index past) {
  Rotary rotary{.theta = *positions.rope_theta, .offsets = mask.offsets(), .from = 0};
  for (Index& offset : rotary.offsets) {
    offset += positions.query_shift - (positions.counts_past ? 0 : past);
  }
  return turned(with_pairs_as_halves(q, positions.pairs), rotary, positions.backwards);
}

Tensor<double> turned_keys(const Tensor<double>& k, const VariantPositions& positions, Index past) {
  const Rotary rotary{.theta = *positions.rope_theta,
                      .offsets = {positions.counts_past ? 0 : -past},
                      .from = positions.rotates_past ? 0 : past};
  Tensor<double> keys = with_pairs_as_halves(k, positions.pairs);
  if (!positions.rotates_keys) return keys;
  return turned(std::move(keys), rotary, positions.backwards);
}

void add_variant_alibi(const VariantPositions& positions, const Mask& mask, Index b, Index h,
                       Index i, std::span<double> bias) {
  if (positions.slopes.empty()) return;
  const double slope = positions.slopes[static_cast<std::size_t>(h)];
  const auto self = static_cast<double>(mask.position(b, i));
  for (std::size_t j = 0; j < bias.size(); ++j) {
    bias[j] -= slope * std::abs(self - static_cast<double>(j));
  }
}

}  // namespace attnlab
