#include "render/experiment_tables.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "options/wrapped.h"
#include "render/blocks.h"
#include "render/columns.h"

namespace attnlab {
namespace {

std::string experiment_table(const std::vector<ResultRef>& results, const std::string& finding,
                             const std::vector<std::string_view>& names, const Style& style) {
  for (const ResultRef& result : results) {
    if (result.name != "rows") continue;
    const auto& rows = std::get<RowsRef>(result.value);
    if (rows.count == 0) break;
    return rows_block(result, chosen_columns(rows, names), style) + "\n" +
           wrapped(finding, style.width, 0) + "\n";
  }
  return "no rows\n";
}

// Heads of given weights beside random scores of the same variance.
std::string heads_table(const SaturationResult& result, const Style& style) {
  std::vector<std::string_view> names = {"head"};
  const bool masked = std::any_of(
      result.rows.begin(), result.rows.end(),
      [](const SaturationRow& row) { return row.keys_seen < static_cast<double>(row.keys); });
  if (masked) names.emplace_back("keys_seen");
  names.insert(names.end(), {"logit_variance", "max_p", "max_p_theory", "entropy", "entropy_theory",
                             "effective_keys", "trace", "trace_theory"});
  return experiment_table(result_of(result), result.finding, names, style);
}

}  // namespace

std::optional<std::string> variance_table(const VarianceOptions& options,
                                          const VarianceResult& result,
                                          const std::vector<std::string>& /*shown*/,
                                          const Style& style) {
  std::vector<std::string_view> names = {"d_k",     "scaling",         "variance", "ci_low",
                                         "ci_high", "theory_variance", "ratio",    "alpha"};
  if (options.components) {
    names.insert(names.end(),
                 {"component_variance_sum", "covariance_term", "covariance_term_std_error",
                  "theory_covariance_term", "components_total"});
  }
  const bool robust =
      std::any_of(result.rows.begin(), result.rows.end(),
                  [](const VarianceRow& row) { return row.interquartile_range.has_value(); });
  if (robust) names.insert(names.end(), {"interquartile_range", "median_absolute_deviation"});
  return experiment_table(result_of(result), result.finding, names, style);
}

std::optional<std::string> saturation_table(const SaturationOptions& options,
                                            const SaturationResult& result,
                                            const std::vector<std::string>& /*shown*/,
                                            const Style& style) {
  if (!options.weights.empty()) return heads_table(result, style);
  std::vector<std::string_view> names;
  if (options.logits == Logits::dot) names = {"d_k", "keys", "scaling"};
  if (options.logits == Logits::iid) names = {"keys"};
  names.insert(names.end(),
               {"logit_variance", "sum_p2", "sum_p2_theory", "entropy", "entropy_theory",
                "effective_keys", "jacobian_f2", "jacobian_f_median", "naive_nan_share"});
  return experiment_table(result_of(result), result.finding, names, style);
}

std::optional<std::string> gradients_table(const GradientsOptions& /*options*/,
                                           const GradientsResult& result,
                                           const std::vector<std::string>& /*shown*/,
                                           const Style& style) {
  return experiment_table(
      result_of(result), result.finding,
      {"d_k", "keys", "scaling", "rms_grad_q", "rms_grad_q_theory", "median_grad_q", "dead_share",
       "rms_grad_k", "median_grad_k", "rms_grad_v", "median_grad_v"},
      style);
}

std::optional<std::string> diagnose_table(const DiagnoseOptions& /*options*/,
                                          const DiagnoseResult& result,
                                          const std::vector<std::string>& /*shown*/,
                                          const Style& style) {
  constexpr std::size_t kNearest = 6;
  DiagnoseResult nearest = result;
  // What is not to be told from what was asked for a note names.
  std::erase_if(nearest.rows, [](const DiagnoseRow& row) {
    return row.as_asked && !row.explains && row.mistake != "correct";
  });
  if (nearest.rows.size() > kNearest) nearest.rows.resize(kNearest);
  return experiment_table(result_of(nearest), "The candidate " + result.verdict + ".",
                          {"rank", "mistake", "max_abs_error", "relative_norm", "rows_apart"},
                          style);
}

std::optional<std::string> bench_table(const BenchOptions& options, const BenchResult& result,
                                       const std::vector<std::string>& /*shown*/,
                                       const Style& style) {
  std::vector<std::string_view> names;
  const BenchOptions usual;
  const auto asks_for = [&](BenchOperation operation) {
    return std::find(options.operation.begin(), options.operation.end(), operation) !=
           options.operation.end();
  };
  const bool normals = asks_for(BenchOperation::normals);
  const bool products = !normals || options.operation.size() > 1;
  const auto add_if = [&](bool shown, std::initializer_list<std::string_view> more) {
    if (shown) names.insert(names.end(), more);
  };
  add_if(options.operation != usual.operation, {"operation"});
  add_if(true, {"n", "d_k"});
  add_if(products, {"kernel", "weights"});
  add_if(options.buffers != usual.buffers, {"buffers"});
  add_if(options.threads.size() > 1, {"threads"});
  add_if(true, {"median_ms", "best_ms"});
  add_if(options.threads.size() > 1, {"speedup"});
  add_if(products, {"gflops", "peak_share"});
  add_if(normals, {"values_per_second"});
  add_if(true, {"peak_memory_mib"});
  return experiment_table(result_of(result), result.finding, names, style);
}

}  // namespace attnlab
