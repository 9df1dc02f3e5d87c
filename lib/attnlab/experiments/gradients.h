#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/watch.h"
#include "attnlab/experiments/entry_options.h"
#include "attnlab/experiments/metric_columns.h"
#include "attnlab/experiments/sweep_options.h"

namespace attnlab {

// Measures the gradients that reach q, k and v through scaled dot-product attention: one query
// against n keys a row, d_v = d_k, under a standard normal cotangent of the output.
struct GradientsOptions {
  std::vector<Index> d_k = {16, 64, 256, 1024};
  std::vector<Index> keys = {64};
  std::vector<std::string> scaling = {"none", "inv_sqrt_d"};
  EntryOptions entries;
  SweepOptions sweep;

  static constexpr auto fields() {
    using O = GradientsOptions;
    return std::tuple(
        field("d_k", &O::d_k, "dimensions of queries, keys and values",
              {.range = between<Index>(1, 1 << 24)}),
        field("keys", &O::keys, "numbers of keys", {.range = between<Index>(1, 1 << 20)}),
        field("scaling", &O::scaling,
              "the factor on q.k: none, inv_sqrt_d, inv_d, inv_sqrt_d_sigma2, log_n_over_sqrt_d, "
              "critical, scalable_softmax:S or a number"),
        group("Entries", &O::entries), group("Sampling", &O::sweep));
  }
};

// The gradient to q, k or v: of each row its root mean square over the elements, and over the rows
// the root mean square, the median and how many are dead. Mean and median stand together because a
// few rows can carry the mean.
template <FixedText Name, FixedText Dead>
struct GradientColumns {
  double rms = 0;
  std::optional<double> ci_low, ci_high, theory;
  std::optional<double> median;
  double dead_share = 0;

  static constexpr auto fields() {
    using C = GradientColumns;
    return std::tuple(
        field(kJoined<"rms_", Name>, &C::rms, "root mean square of an element of the gradient"),
        field(kJoined<"rms_", Name, "_ci_low">, &C::ci_low, "its interval, from"),
        field(kJoined<"rms_", Name, "_ci_high">, &C::ci_high, "to"),
        field(kJoined<"rms_", Name, "_theory">, &C::theory, "exact root mean square"),
        field(kJoined<"median_", Name>, &C::median, "median over the rows of a row's own"),
        field(kJoined<Dead>, &C::dead_share,
              "rows whose gradient is below 1% of the root mean square"));
  }
};

struct GradientsRow {
  Index d_k = 0, keys = 0;
  std::string scaling;
  Index samples = 0;
  double logit_variance = 0;
  GradientColumns<"grad_q", "dead_share"> q;
  GradientColumns<"grad_k", "dead_share_k"> k;
  GradientColumns<"grad_v", "dead_share_v"> v;

  static constexpr auto fields() {
    using R = GradientsRow;
    return std::tuple(field("d_k", &R::d_k, "dimension of q, k and v"),
                      field("keys", &R::keys, "keys n"),
                      field("scaling", &R::scaling, "the factor on q.k"),
                      field("samples", &R::samples, "rows measured"),
                      field("logit_variance", &R::logit_variance, "exact variance of a logit"),
                      group("", &R::q), group("", &R::k), group("", &R::v));
  }
};

struct GradientsResult {
  std::vector<GradientsRow> rows;
  std::string finding;
  SweepStatus status;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = GradientsResult;
    return std::tuple(field("rows", &R::rows, "one a d_k, number of keys and scaling"),
                      field("finding", &R::finding, "what was found, in a sentence"),
                      group("", &R::status));
  }
};

// Throws InputError.
GradientsResult gradients(const GradientsOptions& options, const Watch& watch);

}  // namespace attnlab
