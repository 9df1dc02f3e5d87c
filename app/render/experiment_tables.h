#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/experiments/bench.h"
#include "attnlab/experiments/diagnose.h"
#include "attnlab/experiments/gradients.h"
#include "attnlab/experiments/saturation.h"
#include "attnlab/experiments/variance.h"
#include "render/style.h"

namespace attnlab {

// The results of experiments for people: of their many columns those that tell the story, then what
// was found. All columns are in JSON, jsonl and CSV.
std::optional<std::string> variance_table(const VarianceOptions& options,
                                          const VarianceResult& result,
                                          const std::vector<std::string>& shown,
                                          const Style& style);
std::optional<std::string> saturation_table(const SaturationOptions& options,
                                            const SaturationResult& result,
                                            const std::vector<std::string>& shown,
                                            const Style& style);
std::optional<std::string> gradients_table(const GradientsOptions& options,
                                           const GradientsResult& result,
                                           const std::vector<std::string>& shown,
                                           const Style& style);
// The nearest mistakes, then the verdict.
std::optional<std::string> diagnose_table(const DiagnoseOptions& options,
                                          const DiagnoseResult& result,
                                          const std::vector<std::string>& shown,
                                          const Style& style);
std::optional<std::string> bench_table(const BenchOptions& options, const BenchResult& result,
                                       const std::vector<std::string>& shown, const Style& style);

}  // namespace attnlab
