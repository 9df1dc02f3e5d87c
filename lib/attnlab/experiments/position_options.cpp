#include "attnlab/experiments/position_options.h"

namespace attnlab {

Rotations rotations_of(const PositionOptions& options, const Mask& mask, Index past) {
  if (!options.rope_theta) return {};
  Rotary queries{.theta = *options.rope_theta, .offsets = mask.offsets(), .from = 0};
  Rotary keys{.theta = *options.rope_theta, .offsets = {0}, .from = past};
  return {std::move(queries), std::move(keys)};
}

}  // namespace attnlab
