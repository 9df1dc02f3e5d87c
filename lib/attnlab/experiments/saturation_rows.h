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

// Calls f(columns, metric) for those of a row that have intervals, theory and quantiles.
template <class F>
void for_each_main_metric(SaturationRow& row, const F& f) {
  f(row.max_p, Metric::max_p);
  f(row.sum_p2, Metric::sum_p2);
  f(row.entropy, Metric::entropy);
  f(row.jacobian_f2, Metric::jacobian_f2);
  f(row.trace, Metric::trace);
}

// Means, quantiles and shares over the rows of a sample: what does not depend on the keys they see.
void set_measured(const SaturationOptions& options, const RowSample& sample, SaturationRow& row);

SaturationRow saturation_row(const SaturationOptions& options, const SaturationCase& of,
                             const RowSample& sample);

// What was found, from the numbers.
std::string saturation_finding(const std::vector<SaturationRow>& rows);

}  // namespace attnlab
