#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/watch.h"
#include "attnlab/experiments/entry_options.h"
#include "attnlab/experiments/metric_columns.h"
#include "attnlab/experiments/sweep_options.h"

namespace attnlab {

enum class Logits { dot, iid };
template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<Logits> = {"dot", "iid"};

enum class KeyDraw { fresh, reuse };
template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<KeyDraw> = {"fresh", "reuse"};

// Measures how saturated the softmax of a query's scores over n keys is: of scores that are drawn,
// or that of given weights.
struct SaturationOptions {
  TensorSource weights;
  std::vector<Index> d_k = {1, 4, 16, 64, 256, 1024};
  std::vector<Index> keys = {64};
  std::vector<std::string> scaling = {"none", "inv_sqrt_d"};
  Logits logits = Logits::dot;
  std::vector<double> logit_variance;
  KeyDraw key_draw = KeyDraw::fresh;
  EntryOptions entries;
  std::vector<double> quantiles;
  double near_zero = 1e-3;
  SweepOptions sweep;

  static constexpr auto fields() {
    using O = SaturationOptions;
    return std::tuple(
        field("weights", &O::weights,
              "the heads of given weights instead, [n, m] or [.., heads, n, m], whose rows sum to "
              "1: a row a head, over all batch entries",
              {.unit = "FILE"}),
        field("d_k", &O::d_k, "dimensions of queries and keys",
              {.range = between<Index>(1, 1 << 24)}),
        field("keys", &O::keys, "numbers of keys", {.range = between<Index>(1, 1 << 20)}),
        field("scaling", &O::scaling,
              "what is done to q.k: none, inv_sqrt_d, inv_d, inv_sqrt_d_sigma2, "
              "log_n_over_sqrt_d, critical, scalable_softmax:S, qk_norm:G, cosine:INVTAU, "
              "softcap:C or a factor"),
        field("logits", &O::logits, "dot products of drawn vectors, or independent normals"),
        field("logit_variance", &O::logit_variance,
              "variances of independent normal logits; 0.25,1,4 unless given",
              {.range = between(0.0, 1e12)}),
        field("key_draw", &O::key_draw,
              "fresh keys for every query, or the same for the queries of a block"),
        field("quantiles", &O::quantiles, "of each metric over the rows, as .1,.5,.9",
              {.range = between(0.0, 1.0)}),
        field("near_zero", &O::near_zero,
              "an entry of the Jacobian is near zero below this over keys^2",
              {.range = above(0.0)}),
        group("Entries", &O::entries), group("Sampling", &O::sweep));
  }
};

// One d_k, number of keys and scaling, or one head of given weights. p is the softmax of a row, J
// its Jacobian. Of a head everything is over the rows that see a key, n of each the keys it sees:
// those of weight above 0. Its logits are known from the weights up to a number that all of a row
// have in common.
struct SaturationRow {
  std::optional<Index> head;
  std::optional<Index> d_k;
  Index keys = 0;
  std::optional<std::string> scaling;
  Index samples = 0;
  std::optional<Index> empty_rows;
  std::optional<double> keys_seen;
  std::optional<double> logit_variance;
  MetricColumns<"max_p", "mean largest weight of a row"> max_p;
  MetricColumns<"sum_p2", "mean sum of squared weights"> sum_p2;
  MetricColumns<"entropy", "mean entropy, in nats"> entropy;
  MetricColumns<"jacobian_f2", "mean ||J||_F^2"> jacobian_f2;
  MetricColumns<"trace", "mean tr J = 1 - sum p^2"> trace;
  double effective_keys = 0, perplexity = 0;
  std::optional<double> entropy_share;
  double jacobian_f_rms = 0;
  std::optional<double> jacobian_f_median;
  double lambda_max = 0;
  std::optional<double> log_odds_gap;
  double share_max_above_9 = 0, share_max_above_99 = 0, share_max_above_999 = 0;
  std::optional<double> frozen_above_9, frozen_above_99, frozen_above_999;
  double near_zero_share = 0, exact_zero_share = 0, subnormal_share = 0, max_one_share = 0;
  std::optional<double> naive_nan_share, naive_nan_share_theory;
  std::optional<double> critical_variance, saturation;
  std::optional<double> frozen_sum_p2, frozen_entropy, frozen_jacobian_f2;
  std::optional<double> small_v_sum_p2, small_v_entropy, small_v_jacobian_f2;

  static constexpr auto fields() {
    using R = SaturationRow;
    return std::tuple(
        field("head", &R::head, "head of given weights"),
        field("d_k", &R::d_k, "dimension of q and k; none for independent logits"),
        field("keys", &R::keys, "keys n"), field("scaling", &R::scaling, "what is done to q.k"),
        field("samples", &R::samples, "rows measured"),
        field("empty_rows", &R::empty_rows, "rows of given weights that see no key, left out"),
        field("keys_seen", &R::keys_seen, "of given weights: mean number of keys that a row sees"),
        field("logit_variance", &R::logit_variance,
              "exact variance v of a logit; of given weights the mean over rows of the variance of "
              "ln p over the keys seen (divisor n - 1)"),
        group("", &R::max_p), group("", &R::sum_p2), group("", &R::entropy),
        group("", &R::jacobian_f2), group("", &R::trace),
        field("effective_keys", &R::effective_keys, "mean of 1 / sum p^2"),
        field("perplexity", &R::perplexity, "mean of e^entropy"),
        field("entropy_share", &R::entropy_share, "mean of entropy / ln n"),
        field("jacobian_f_rms", &R::jacobian_f_rms, "root of the mean of ||J||_F^2"),
        field("jacobian_f_median", &R::jacobian_f_median, "median of ||J||_F over the rows"),
        field("lambda_max", &R::lambda_max, "mean largest eigenvalue of J, in [0, 1/2]"),
        field("log_odds_gap", &R::log_odds_gap, "mean of the largest logit less the second"),
        field("share_max_above_0.9", &R::share_max_above_9, "rows whose largest weight is more"),
        field("share_max_above_0.99", &R::share_max_above_99, "rows whose largest weight is more"),
        field("share_max_above_0.999", &R::share_max_above_999,
              "rows whose largest weight is more"),
        field("share_max_above_0.9_frozen", &R::frozen_above_9,
              "the closed form of the frozen phase, v above 2 ln n"),
        field("share_max_above_0.99_frozen", &R::frozen_above_99, "alike"),
        field("share_max_above_0.999_frozen", &R::frozen_above_999, "alike"),
        field("near_zero_share", &R::near_zero_share,
              "entries of J below near_zero / n^2 (those of a uniform row are about 1/n^2)"),
        field("exact_zero_share", &R::exact_zero_share,
              "weights that are 0 in float32; of given weights, as they are"),
        field("subnormal_share", &R::subnormal_share, "weights that are subnormal in float32"),
        field("max_one_share", &R::max_one_share, "rows whose largest weight is 1 in float32"),
        field("naive_nan_share", &R::naive_nan_share,
              "rows that are NaN in float32 without subtracting the maximum; not to be known of "
              "given "
              "weights"),
        field("naive_nan_share_theory", &R::naive_nan_share_theory,
              "probability that an exponential overflows float32"),
        field("critical_variance", &R::critical_variance, "2 ln n, where the softmax freezes"),
        field("m", &R::saturation, "E[largest of n normals] / sqrt(v): frozen below 1"),
        field("sum_p2_frozen", &R::frozen_sum_p2, "closed form of the frozen phase, 1 - m"),
        field("entropy_frozen", &R::frozen_entropy, "psi(1) - psi(1 - m)"),
        field("jacobian_f2_frozen", &R::frozen_jacobian_f2, "m (1 - m) / 3"),
        field("sum_p2_small_v", &R::small_v_sum_p2, "closed form for v below 1, to second order"),
        field("entropy_small_v", &R::small_v_entropy, "alike"),
        field("jacobian_f2_small_v", &R::small_v_jacobian_f2, "to first order"));
  }
};

struct SaturationResult {
  std::vector<SaturationRow> rows;
  std::string finding;
  SweepStatus status;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = SaturationResult;
    return std::tuple(field("rows", &R::rows, "one a d_k, number of keys and scaling, or a head"),
                      field("finding", &R::finding, "what was found, in a sentence"),
                      group("", &R::status));
  }
};

// Throws InputError.
SaturationResult saturation(const SaturationOptions& options, const Watch& watch);

}  // namespace attnlab
