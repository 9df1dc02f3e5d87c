#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/score_sampler.h"
#include "attnlab/experiments/variance.h"
#include "attnlab/experiments/variance_state.h"
#include "attnlab/stats/scaling.h"

namespace attnlab {

// What the state of one d_k says under each scaling.
std::vector<VarianceRow> variance_rows(const VarianceOptions& options,
                                       const std::vector<Scaling>& scalings,
                                       const ScoreSampler& sampler, const VarianceState& state);

// Of the unscaled variance on d_k; nothing where there is no interval or only one d_k, or where
// a scaling that is no power of d_k times a number is all there is.
std::optional<VarianceFit> variance_fit(const std::vector<VarianceRow>& rows,
                                        const VarianceOptions& options);

// One sentence from the numbers.
std::string variance_finding(const std::vector<VarianceRow>& rows,
                             const std::optional<VarianceFit>& fit);

// Why there is no interval, and what else a reader should know of the rows.
void add_variance_notes(const VarianceOptions& options, VarianceResult& result);

}  // namespace attnlab
