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
#include "attnlab/experiments/sweep_options.h"

namespace attnlab {

enum class Projection { none, free, tied };
template <>
inline constexpr std::array<std::string_view, 3> kChoiceNames<Projection> = {"none", "free",
                                                                             "tied"};

enum class Positions { same, different };
template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<Positions> = {"same", "different"};

enum class Sampling { independent, pairs };
template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<Sampling> = {"independent", "pairs"};

// What q and k have in common, or apart from mean 0.
struct DependenceOptions {
  double mean_q = 0, mean_k = 0;
  double rho_q = 0, rho_k = 0, rho_qk = 0;

  static constexpr auto fields() {
    using O = DependenceOptions;
    return std::tuple(
        field("mean_q", &O::mean_q, "mean of the entries of q", {.range = between(-1e9, 1e9)}),
        field("mean_k", &O::mean_k, "mean of the entries of k", {.range = between(-1e9, 1e9)}),
        field("rho_q", &O::rho_q, "correlation of any two entries of q, from -1/(d_k - 1) to 1",
              {.range = between(-1.0, 1.0)}),
        field("rho_k", &O::rho_k, "correlation of any two entries of k",
              {.range = between(-1.0, 1.0)}),
        field("rho_qk", &O::rho_qk, "correlation of q_i and k_i", {.range = between(-1.0, 1.0)}));
  }
};

// Scores of tokens x, y behind projections: q = W_q x, k = W_k y with fresh W of entries N(0, 1/D).
struct ProjectionOptions {
  Projection projection = Projection::none;
  Positions positions = Positions::same;
  bool layer_norm = false;
  std::optional<Index> d_model;

  static constexpr auto fields() {
    using O = ProjectionOptions;
    return std::tuple(field("projection", &O::projection,
                            "q = W_q x, k = W_k x of a token x: W_k free, or tied to W_q"),
                      field("positions", &O::positions,
                            "whether q and k come from the same token, or k from a different one"),
                      field("layer_norm", &O::layer_norm, "tokens pass a layer norm first"),
                      field("d_model", &O::d_model, "entries of a token, 512 unless given",
                            {.range = between<Index>(1, 1 << 24)}));
  }
};

// Measures the variance of the score q.k against d_k, as it is and scaled.
struct VarianceOptions {
  std::vector<Index> d_k = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<std::string> scaling = {"none", "inv_sqrt_d"};
  EntryOptions entries;
  DependenceOptions dependence;
  ProjectionOptions projection;
  Sampling sampling = Sampling::independent;
  bool components = false;
  SweepOptions sweep = usual_sweep(10000);

  static constexpr auto fields() {
    using O = VarianceOptions;
    return std::tuple(
        field("d_k", &O::d_k, "dimensions of queries and keys",
              {.range = between<Index>(1, 1 << 24)}),
        field("scaling", &O::scaling,
              "what divides q.k: none, inv_sqrt_d, inv_d, inv_sqrt_d_sigma2, qk_norm:G, "
              "cosine:INVTAU, softcap:C or a factor"),
        group("Entries", &O::entries), group("Entries", &O::dependence),
        group("Projection", &O::projection),
        field("sampling", &O::sampling,
              "independent pairs, or all pairs of the queries and keys of 64 blocks or more, "
              "which share vectors"),
        field("components", &O::components,
              "also the sum of the variances of q_i k_i, and their covariance term"),
        group("Sampling", &O::sweep));
  }
};

// One d_k under one scaling.
struct VarianceRow {
  Index d_k = 0;
  std::string scaling;
  Index samples = 0;
  double mean = 0;
  std::optional<double> theory_mean;
  double variance = 0;
  std::optional<double> std_error, ci_low, ci_high;
  std::optional<double> theory_variance, ratio, z;
  std::optional<double> excess_kurtosis, theory_excess_kurtosis;
  std::optional<double> alpha;
  std::optional<double> component_variance_sum, covariance_term, covariance_term_std_error,
      theory_covariance_term, components_total;
  std::optional<double> interquartile_range, median_absolute_deviation;
  std::optional<double> largest_fourth_power_share;

  static constexpr auto fields() {
    using R = VarianceRow;
    return std::tuple(
        field("d_k", &R::d_k, "dimension of q and k"),
        field("scaling", &R::scaling, "what is done to q.k"),
        field("samples", &R::samples, "pairs measured"), field("mean", &R::mean, "mean score"),
        field("theory_mean", &R::theory_mean, "exact mean"),
        field("variance", &R::variance,
              "variance of the score, divisor n - 1; over blocks of pairs its mean square"),
        field("std_error", &R::std_error, "standard error of the variance"),
        field("ci_low", &R::ci_low, "interval of the variance, from"),
        field("ci_high", &R::ci_high, "to"),
        field("theory_variance", &R::theory_variance, "exact variance"),
        field("ratio", &R::ratio, "variance / theory_variance"),
        field("z", &R::z, "(variance - theory_variance) / std_error"),
        field("excess_kurtosis", &R::excess_kurtosis, "of the score, 0 for a normal"),
        field("theory_excess_kurtosis", &R::theory_excess_kurtosis, "exact excess kurtosis"),
        field("alpha", &R::alpha,
              "the divisor of q.k that makes the variance 1: sqrt(d_k) sigma^2 for independent "
              "entries of mean 0"),
        field("component_variance_sum", &R::component_variance_sum, "sum of Var(q_i k_i)"),
        field("covariance_term", &R::covariance_term, "variance - component_variance_sum"),
        field("covariance_term_std_error", &R::covariance_term_std_error,
              "standard error of covariance_term for independent entries of mean 0"),
        field("theory_covariance_term", &R::theory_covariance_term, "exact covariance term"),
        field("components_total", &R::components_total,
              "sum of all entries of the covariance matrix of the q_i k_i, which is the variance "
              "(d_k to 256)"),
        field("interquartile_range", &R::interquartile_range,
              "in place of an interval where none is valid (quantiles: Hyndman and Fan, type 7)"),
        field("median_absolute_deviation", &R::median_absolute_deviation,
              "median of |score - median|, alike"),
        field("largest_fourth_power_share", &R::largest_fourth_power_share,
              "how much of sum (score - mean)^4 is one score: near 1 where it is infinite"));
  }
};

// ln variance = slope ln d_k + intercept, of the unscaled score; scaling by a power of d_k shifts
// the slope by a known number.
struct VarianceFit {
  std::optional<double> slope, std_error, ci_low, ci_high, intercept, chi2;

  static constexpr auto fields() {
    using F = VarianceFit;
    return std::tuple(
        field("slope", &F::slope, "of ln Var(q.k) on ln d_k, weighted least squares"),
        field("std_error", &F::std_error, "standard error of the slope"),
        field("ci_low", &F::ci_low, "interval of the slope, from"),
        field("ci_high", &F::ci_high, "to"),
        field("intercept", &F::intercept, "ln variance at d_k = 1"),
        field("chi2", &F::chi2, "sum of squared residuals over their standard errors"));
  }
};

struct VarianceResult {
  std::vector<VarianceRow> rows;
  std::optional<VarianceFit> fit;
  std::string finding;
  SweepStatus status;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = VarianceResult;
    return std::tuple(field("rows", &R::rows, "one a d_k and scaling"),
                      field("fit", &R::fit, "how the unscaled variance grows with d_k"),
                      field("finding", &R::finding, "what was found, in a sentence"),
                      group("", &R::status));
  }
};

// Throws InputError.
VarianceResult variance(const VarianceOptions& options, const Watch& watch);

}  // namespace attnlab
