#include "attnlab/experiments/variance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "attnlab/core/dot.h"
#include "attnlab/core/dot_rows.h"
#include "attnlab/core/memory.h"
#include "attnlab/experiments/scaling_list.h"
#include "attnlab/experiments/score_sampler.h"
#include "attnlab/experiments/sweep.h"
#include "attnlab/experiments/variance_rows.h"

namespace attnlab {
namespace {

// All pairs of `side` queries and keys make a block; there are at least kPairBlocks of them, so
// that the t interval over blocks holds.
constexpr Index kPairBlocks = 64;
constexpr Index kLargestSide = 64;
// A full covariance matrix of the components is d_k^2 numbers.
constexpr Index kLargestCovariance = 256;
// Of the queries of pairs that are drawn together, and of their keys: they stay in the first cache.
constexpr Index kEntriesAtOnce = 4096;

class VarianceSweep {
 public:
  VarianceSweep(const VarianceOptions& options, const Watch& watch)
      : options_(options), watch_(watch), scalings_(factor_or_function(options.scaling)) {
    check_score_options(options);
    require_list(options.d_k, "d_k");
    for (std::size_t i = 0; i < options.d_k.size(); ++i) samplers_.push_back(sampler(i));
    // Bounded scores have every moment, whatever the entries.
    keeps_scores_ = !samplers_.empty() && !samplers_[0].theory().finite_fourth_moment &&
                    !std::all_of(scalings_.begin(), scalings_.end(), is_function);
    if (keeps_scores_) {
      // Once in the blocks and once merged.
      require_memory(2 * sizeof(double) * static_cast<std::uint64_t>(options.sweep.samples),
                     "the scores kept for robust figures");
    }
    if (options.sampling == Sampling::pairs) {
      if (options.sweep.samples < kPairBlocks) {
        throw InputError("", "samples", std::to_string(options.sweep.samples),
                         "need at least 64, one pair a block, with sampling pairs");
      }
      while (side_ < kLargestSide &&
             (side_ + 1) * (side_ + 1) * kPairBlocks <= options.sweep.samples) {
        ++side_;
      }
    }
    require_room();
  }

  SweepTask<VarianceState, VarianceRow> task() const {
    SweepTask<VarianceState, VarianceRow> task;
    task.points = std::ssize(options_.d_k);
    task.rows_a_point = std::ssize(scalings_);
    task.trials = static_cast<std::uint64_t>(options_.sweep.samples / (side_ * side_));
    task.cost = [this](Index p) { return static_cast<double>(d_k(p)) + 10; };
    task.empty = [this](Index p) { return empty(p); };
    task.work = [this](Index p, VarianceState& state, std::uint64_t first, std::uint64_t last) {
      work(p, state, first, last);
    };
    task.rows = [this](Index p, const VarianceState& state) {
      return variance_rows(options_, scalings_, samplers_[static_cast<std::size_t>(p)], state);
    };
    task.is_row = [this](Index p, Index i, const VarianceRow& row) {
      return row.d_k == d_k(p) &&
             row.scaling == scaling_name(scalings_[static_cast<std::size_t>(i)]);
    };
    return task;
  }

  // A side of 1 is independent pairs.
  Index side() const { return side_; }

 private:
  Index d_k(Index point) const { return options_.d_k[static_cast<std::size_t>(point)]; }
  ScoreSampler sampler(std::size_t point) const {
    return {options_, options_.d_k[point], static_cast<Index>(point)};
  }

  // The vectors of a block and what is measured of their components, a thread.
  void require_room() const {
    const auto d =
        static_cast<std::uint64_t>(*std::max_element(options_.d_k.begin(), options_.d_k.end()));
    const auto vectors = 2 * static_cast<std::uint64_t>(side_) * sizeof(float);
    const auto components = (options_.components ? 8 : 0) * sizeof(double);
    const auto threads = static_cast<std::uint64_t>(thread_count(options_.sweep.run.threads));
    require_memory(threads * d * (vectors + components), "the vectors of d_k");
  }

  // q.k itself, then one for each scaling that is a function of it.
  std::size_t scalings_of_scores() const {
    return 1 +
           static_cast<std::size_t>(std::count_if(scalings_.begin(), scalings_.end(), is_function));
  }

  VarianceState empty(Index point) const {
    VarianceState state;
    state.samples.resize(scalings_of_scores());
    if (options_.components) {
      state.components.emplace(d_k(point));
      if (d_k(point) <= kLargestCovariance) state.covariance.emplace(d_k(point));
    }
    return state;
  }

  void work(Index point, VarianceState& state, std::uint64_t first, std::uint64_t last) const {
    ScoreSampler sampler = samplers_[static_cast<std::size_t>(point)];
    const auto most = static_cast<std::uint64_t>(
        std::max<Index>(1, 2 * kEntriesAtOnce / sampler.entries_a_pair()));
    while (first < last && !watch_.cancelled()) {
      if (options_.sampling == Sampling::pairs) {
        all_pairs(sampler, first++, state);
      } else {
        const std::uint64_t count = std::min(most, last - first);
        some_pairs(sampler, first, count, state);
        first += count;
      }
    }
  }

  void some_pairs(ScoreSampler& sampler, std::uint64_t first, std::uint64_t count,
                  VarianceState& state) const {
    const auto d = static_cast<std::size_t>(sampler.d_k());
    const auto entries = std::make_unique_for_overwrite<float[]>(2 * count * d);
    const std::span<float> q(entries.get(), count * d), k(entries.get() + count * d, count * d);
    std::array<double, kBlockTrials> scores{};
    sampler.draw_pairs(first, q, k);
    const auto raw = std::span(scores).first(count);
    dot_of_rows(q, k, d, raw);
    add_scores(raw, state);
    for (std::size_t i = 0; i < count; ++i) {
      const auto q_i = q.subspan(i * d, d), k_i = k.subspan(i * d, d);
      add_functions(raw[i], q_i, k_i, state);
      if (state.components) add_components(q_i, k_i, state);
    }
  }

  static void add_components(std::span<const float> q, std::span<const float> k,
                             VarianceState& state) {
    std::vector<double> products(q.size());
    for (std::size_t i = 0; i < q.size(); ++i) {
      products[i] = static_cast<double>(q[i]) * static_cast<double>(k[i]);
    }
    state.components->add(products);
    if (state.covariance) state.covariance->add(products);
  }

  void all_pairs(const ScoreSampler& sampler, std::uint64_t block, VarianceState& state) const {
    const auto d = static_cast<std::size_t>(sampler.d_k());
    const auto side = static_cast<std::size_t>(side_);
    std::vector<float> q(side * d), k(side * d);
    for (std::size_t i = 0; i < side && !watch_.cancelled(); ++i) {
      sampler.draw_queries(block * side + i, std::span(q).subspan(i * d, d));
      sampler.draw_keys(block * side + i, std::span(k).subspan(i * d, d));
    }
    std::vector<double> squares(state.samples.size()), scores(side);
    for (std::size_t i = 0; i < side && !watch_.cancelled(); ++i) {
      const auto q_i = std::span(q).subspan(i * d, d);
      dot_with_rows(q_i, k, scores);
      add_scores(scores, state);
      for (std::size_t j = 0; j < side; ++j) {
        squares[0] += scores[j] * scores[j];
        add_functions(scores[j], q_i, std::span(k).subspan(j * d, d), state, squares);
      }
    }
    for (std::size_t s = 0; s < squares.size(); ++s) {
      state.samples[s].block_mean_squares.push_back(squares[s] / static_cast<double>(side * side));
    }
  }

  // Scores q.k.
  void add_scores(std::span<const double> raw, VarianceState& state) const {
    state.samples[0].moments.add(raw);
    if (!keeps_scores_) return;
    auto& kept = state.samples[0].scores;
    kept.insert(kept.end(), raw.begin(), raw.end());
  }

  // What the scalings that are functions make of a score q.k.
  void add_functions(double raw, std::span<const float> q, std::span<const float> k,
                     VarianceState& state, std::span<double> squares = {}) const {
    if (state.samples.size() == 1) return;
    std::size_t s = 1;
    for (const Scaling& scaling : scalings_) {
      if (!is_function(scaling)) continue;
      const double lengths = is_cosine(scaling) ? std::sqrt(dot(q, q) * dot(k, k)) : 0;
      const double score = scaled_score(scaling, raw, static_cast<double>(q.size()), lengths);
      state.samples[s].moments.add(score);
      if (!squares.empty()) squares[s] += score * score;
      ++s;
    }
  }

  const VarianceOptions& options_;
  const Watch& watch_;
  std::vector<Scaling> scalings_;
  std::vector<ScoreSampler> samplers_;
  Index side_ = 1;
  bool keeps_scores_ = false;  // q.k whole, for robust figures
};

}  // namespace

VarianceResult variance(const VarianceOptions& options, const Watch& watch) {
  const VarianceSweep sweep(options, watch);
  VarianceResult result;
  if (options.sampling == Sampling::pairs) {
    result.notes.push_back(
        "pairs: independent blocks of " + std::to_string(sweep.side()) +
        " queries and as many "
        "keys, and an interval over blocks; samples counts the pairs of whole blocks");
  }
  result.rows = run_sweep(sweep.task(), options.sweep, watch, result.status);
  result.fit = variance_fit(result.rows, options);
  result.finding = variance_finding(result.rows, result.fit);
  add_variance_notes(options, result);
  return result;
}

}  // namespace attnlab
