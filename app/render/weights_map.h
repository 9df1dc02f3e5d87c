#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/weights.h"
#include "render/style.h"

namespace attnlab {

// The weights as a heat map, what each row looks like beside it; nothing where numbers serve
// better: outside a terminal, and when the weights are not among what is shown.
std::optional<std::string> weights_map(const WeightsOptions& options, const WeightsResult& result,
                                       const std::vector<std::string>& shown, const Style& style);

}  // namespace attnlab
