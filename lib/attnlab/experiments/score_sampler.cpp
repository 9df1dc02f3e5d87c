#include "attnlab/experiments/score_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "attnlab/core/dot.h"
#include "attnlab/core/error.h"
#include "attnlab/stats/entry_trials.h"

namespace attnlab {
namespace {

constexpr Index kUsualTokenSize = 512;

bool depends(const DependenceOptions& options) {
  return options.mean_q != 0 || options.mean_k != 0 || options.rho_q != 0 || options.rho_k != 0 ||
         options.rho_qk != 0;
}

[[noreturn]] void refuse(const char* field, const char* rule) {
  throw InputError("", field, "", rule);
}

const char* first_dependence(const DependenceOptions& options) {
  return options.mean_q != 0   ? "mean_q"
         : options.mean_k != 0 ? "mean_k"
         : options.rho_q != 0  ? "rho_q"
         : options.rho_k != 0  ? "rho_k"
                               : "rho_qk";
}

// Layer norm (Ba, Kiros and Hinton 2016) without gain: mean 0, mean square 1. A constant token
// stays 0.
void normalise(std::span<float> token) {
  const auto size = static_cast<double>(token.size());
  double mean = 0;
  for (const float x : token) mean += static_cast<double>(x);
  mean /= size;
  double square = 0;
  for (const float x : token) {
    const double c = static_cast<double>(x) - mean;
    square += c * c;
  }
  const double scale = square > 0 ? std::sqrt(size / square) : 0;
  for (float& x : token) x = static_cast<float>((static_cast<double>(x) - mean) * scale);
}

}  // namespace

void check_score_options(const VarianceOptions& options) {
  const ProjectionOptions& projection = options.projection;
  if (projection.projection == Projection::none) {
    constexpr const char* kRule = "is of scores behind a projection: give --projection too";
    if (projection.layer_norm) refuse("layer_norm", kRule);
    if (projection.d_model) refuse("d_model", kRule);
    if (projection.positions != Positions::same) refuse("positions", kRule);
  } else {
    if (depends(options.dependence)) {
      refuse(first_dependence(options.dependence),
             "is of q and k themselves; behind a projection they come from tokens");
    }
    if (projection.layer_norm && projection.d_model == Index{1}) {
      refuse("d_model", "need at least 2 entries for a layer norm");
    }
  }
  if (options.sampling == Sampling::pairs) {
    constexpr const char* kRule =
        "cannot go with sampling pairs: its interval is that of a mean square, of independent "
        "queries and keys of mean 0";
    if (projection.projection != Projection::none) refuse("projection", kRule);
    if (options.dependence.mean_q != 0) refuse("mean_q", kRule);
    if (options.dependence.mean_k != 0) refuse("mean_k", kRule);
    if (options.dependence.rho_qk != 0) refuse("rho_qk", kRule);
    if (options.components) refuse("components", kRule);
  }
}

ScoreSampler::ScoreSampler(const VarianceOptions& options, Index d_k, Index point)
    : options_(options),
      q_law_(entry_law(options.entries, options.dependence.mean_q)),
      k_law_(entry_law(options.entries, options.dependence.mean_k)),
      d_k_(d_k),
      point_(static_cast<std::uint64_t>(point)),
      d_model_(options.projection.d_model.value_or(kUsualTokenSize)) {
  theory();  // which checks the correlations against d_k
}

bool ScoreSampler::is_plain() const {
  return options_.projection.projection == Projection::none && !depends(options_.dependence);
}

Index ScoreSampler::entries_a_pair() const {
  if (options_.projection.projection == Projection::none) return 2 * d_k_;
  return 2 * d_k_ + (options_.projection.positions == Positions::same ? 1 : 2) * d_model_;
}

void ScoreSampler::draw_standard(std::uint64_t first, Stream role, const EntryLaw& law, double rho,
                                 std::span<float> vectors) const {
  const auto d = static_cast<std::size_t>(d_k_);
  fill_standard_trials(vectors, d, law, options_.sweep.run.seed, stream_at(role, point_), first);
  if (rho == 0) return;
  for (std::size_t i = 0; i < vectors.size(); i += d) equicorrelate(vectors.subspan(i, d), rho);
}

void ScoreSampler::draw_queries(std::uint64_t first, std::span<float> q) const {
  draw_standard(first, Stream::sample_q, q_law_, options_.dependence.rho_q, q);
  apply_scale(q, q_law_);
}

void ScoreSampler::draw_keys(std::uint64_t first, std::span<float> k) const {
  draw_standard(first, Stream::sample_k, k_law_, options_.dependence.rho_k, k);
  apply_scale(k, k_law_);
}

void ScoreSampler::draw_pairs(std::uint64_t first, std::span<float> q, std::span<float> k) {
  if (options_.projection.projection != Projection::none) {
    const auto d = static_cast<std::size_t>(d_k_);
    for (std::size_t i = 0; i < q.size(); i += d) {
      project(first++, q.subspan(i, d), k.subspan(i, d));
    }
    return;
  }
  // Correlated in standard units, then scaled.
  draw_standard(first, Stream::sample_q, q_law_, options_.dependence.rho_q, q);
  draw_standard(first, Stream::sample_k, k_law_, options_.dependence.rho_k, k);
  correlate_with(k, q, options_.dependence.rho_qk);
  apply_scale(q, q_law_);
  apply_scale(k, k_law_);
}

void ScoreSampler::draw_token(Stream role, std::uint64_t trial, std::vector<float>& token) const {
  token.resize(static_cast<std::size_t>(d_model_));
  fill_entries(token, q_law_, options_.sweep.run.seed, stream_at(role, point_), trial);
  if (options_.projection.layer_norm) normalise(token);
}

void ScoreSampler::project(std::uint64_t trial, std::span<float> q, std::span<float> k) {
  const std::uint64_t seed = options_.sweep.run.seed;
  const bool same = options_.projection.positions == Positions::same;
  const bool tied = options_.projection.projection == Projection::tied;
  draw_token(Stream::sample_x, trial, x_);
  if (!same) draw_token(Stream::sample_y, trial, y_);
  const std::vector<float>& y = same ? x_ : y_;
  const auto size = static_cast<double>(d_model_);
  const double xx = dot(x_, x_), yy = dot(y, y);
  // A token of length 0 has no direction, and its score is 0 whatever the cosine.
  const double cosine = xx > 0 && yy > 0 ? dot(x_, y) / std::sqrt(xx * yy) : 0;
  fill_normal(q, seed, stream_at(Stream::sample_weight_q, point_), trial);
  if (tied && same) {
    std::copy(q.begin(), q.end(), k.begin());
  } else {
    fill_normal(k, seed, stream_at(Stream::sample_weight_k, point_), trial);
    if (tied) correlate_with(k, q, std::clamp(cosine, -1.0, 1.0));
  }
  apply_scale(q, {.sigma = std::sqrt(xx / size)});
  apply_scale(k, {.sigma = std::sqrt(yy / size)});
}

ScoreLaw ScoreSampler::score_law(double d) const {
  const DependenceOptions& dependence = options_.dependence;
  // One entry has no other to be correlated with.
  const bool one = d == 1;
  return {
      d, q_law_, k_law_, one ? 0 : dependence.rho_q, one ? 0 : dependence.rho_k, dependence.rho_qk};
}

ScoreTheory ScoreSampler::theory() const {
  const auto d = static_cast<double>(d_k_);
  const ProjectionOptions& projection = options_.projection;
  if (projection.projection == Projection::none) return score_theory(score_law(d));
  const ProjectionLaw law{d, static_cast<double>(d_model_),
                          projection.projection == Projection::tied, projection.layer_norm, q_law_};
  const ProjectedScoreTheory theory = projected_score_theory(law);
  return projection.positions == Positions::same ? theory.self : theory.cross;
}

std::optional<double> ScoreSampler::component_variance_sum() const {
  if (options_.projection.projection != Projection::none) return std::nullopt;
  const std::optional<double> one = score_theory(score_law(1)).variance;
  return one ? std::optional(*one * static_cast<double>(d_k_)) : std::nullopt;
}

}  // namespace attnlab
