#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/row_metrics.h"
#include "attnlab/experiments/saturation.h"
#include "attnlab/stats/scaling.h"

namespace attnlab {

// Which rows a sample is of: a scaling of dot products of d_k entries, or, without d_k, independent
// normal logits.
struct SaturationCase {
  std::optional<Index> d_k;
  Index keys = 0;
  std::optional<Scaling> scaling;
  double logit_variance = 0;
};

SaturationRow saturation_row(const SaturationOptions& options, const SaturationCase& of,
                             const RowSample& sample);

// What was found, from the numbers.
std::string saturation_finding(const std::vector<SaturationRow>& rows);

}  // namespace attnlab
