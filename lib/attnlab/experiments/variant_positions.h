#pragma once

#include <optional>
#include <span>
#include <vector>

#include "attnlab/attention/mask.h"
#include "attnlab/core/tensor.h"

namespace attnlab {

// Which elements of a row are rotated together: c and c + d / 2, or 2 c and 2 c + 1.
enum class RotaryPairs { halves, neighbours };

// Positions as somebody may have brought them into the scores. The defaults are what rotate and
// Mask::set_alibi do.
struct VariantPositions {
  std::optional<double> rope_theta;
  RotaryPairs pairs = RotaryPairs::halves;
  bool backwards = false;      // turned the other way
  bool rotates_keys = true;    // those that are no past
  bool rotates_past = false;   // once more
  bool counts_past = true;     // queries and keys of this call stand after it
  Index query_shift = 0;       // queries stand so many positions late
  std::vector<double> slopes;  // of ALiBi, one a head; none without

  bool any() const { return rope_theta || !slopes.empty(); }
};

// Queries and keys [batch, heads, n, d] as they meet, but for the order of their columns, which is
// the same in both. `past` of the keys come from a past.
Tensor<double> turned_queries(const Tensor<double>& q, const VariantPositions& positions,
                              const Mask& mask, Index past);
Tensor<double> turned_keys(const Tensor<double>& k, const VariantPositions& positions, Index past);

// bias -= slope |i + offset - j| for key j of bias[j], where there are slopes.
void add_variant_alibi(const VariantPositions& positions, const Mask& mask, Index b, Index h,
                       Index i, std::span<double> bias);

}  // namespace attnlab
