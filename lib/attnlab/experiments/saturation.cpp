#include "attnlab/experiments/saturation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attnlab/core/dot.h"
#include "attnlab/core/memory.h"
#include "attnlab/experiments/head_saturation.h"
#include "attnlab/experiments/row_sampler.h"
#include "attnlab/experiments/row_scores.h"
#include "attnlab/experiments/saturation_rows.h"
#include "attnlab/experiments/scaling_list.h"
#include "attnlab/experiments/sweep.h"

namespace attnlab {
namespace {

class SaturationSweep {
 public:
  SaturationSweep(const SaturationOptions& options, const Watch& watch)
      : options_(options), watch_(watch), law_(entry_law(options.entries)) {
    require_list(options.d_k, "d_k");
    require_list(options.keys, "keys");
    if (options.logits == Logits::iid) {
      variances_ = options.logit_variance;
      if (variances_.empty()) variances_ = {0.25, 1, 4};
    } else {
      if (!options.logit_variance.empty()) {
        throw InputError("", "logit_variance", fmt::format("{}", options.logit_variance[0]),
                         "is of --logits iid; scores of vectors have that of their d_k");
      }
      scalings_ = parse_scalings(options.scaling);
    }
    for (const Index keys : options.keys) {
      if (options.logits == Logits::iid) {
        points_.push_back({std::nullopt, keys});
        continue;
      }
      if (options.key_draw == KeyDraw::reuse && options.sweep.samples <= Index{kBlockTrials}) {
        throw InputError(
            "", "samples", std::to_string(options.sweep.samples),
            "need more than one block of 64 rows where the rows of a block share keys");
      }
    }
    if (options.logits == Logits::dot) {
      for (const Index d_k : options.d_k) {
        for (const Index keys : options.keys) points_.push_back({d_k, keys});
      }
    }
    require_room();
  }

  SweepTask<SaturationState, SaturationRow> task() const {
    SweepTask<SaturationState, SaturationRow> task;
    task.points = std::ssize(points_);
    task.rows_a_point = rows_a_point();
    task.trials = static_cast<std::uint64_t>(options_.sweep.samples);
    task.cost = [this](Index p) {
      // A logit costs about as much as a few entries of its key.
      return static_cast<double>(point(p).keys) *
             static_cast<double>(point(p).d_k.value_or(0) + 10 * rows_a_point());
    };
    task.empty = [this](Index) {
      return SaturationState{std::vector<RowSample>(static_cast<std::size_t>(rows_a_point()))};
    };
    task.work = [this](Index p, SaturationState& state, std::uint64_t first, std::uint64_t last) {
      work(p, state, first, last);
    };
    task.is_row = [this](Index p, Index i, const SaturationRow& row) {
      const SaturationCase of = case_of(p, static_cast<std::size_t>(i));
      return row.d_k == of.d_k && row.keys == of.keys && row.logit_variance == of.logit_variance &&
             row.scaling == (of.scaling ? std::optional(scaling_name(*of.scaling)) : std::nullopt);
    };
    task.rows = [this](Index p, const SaturationState& state) { return rows(p, state); };
    return task;
  }

 private:
  struct Point {
    std::optional<Index> d_k;
    Index keys;
  };

  const Point& point(Index p) const { return points_[static_cast<std::size_t>(p)]; }
  Index rows_a_point() const {
    return options_.logits == Logits::iid ? std::ssize(variances_) : std::ssize(scalings_);
  }
  bool reuse() const { return options_.key_draw == KeyDraw::reuse; }

  void require_room() const {
    std::uint64_t largest = 0;
    for (const Point& p : points_) {
      // What a logit takes when its row is measured.
      constexpr std::uint64_t kLogit = 80;
      const std::uint64_t scores = p.d_k ? RowScores::bytes(shape_of(p)) : 0;
      largest = std::max(largest, static_cast<std::uint64_t>(p.keys) * kLogit + scores);
    }
    const auto threads = static_cast<std::uint64_t>(thread_count(options_.sweep.run.threads));
    const auto kept = 1 + (options_.quantiles.empty() ? 0 : kMainMetrics);
    require_memory(largest * threads + 2 * sizeof(double) * kept *
                                           static_cast<std::uint64_t>(options_.sweep.samples) *
                                           static_cast<std::uint64_t>(rows_a_point()),
                   "the rows of a point");
  }

  RowScores::Shape shape_of(const Point& of) const {
    return {static_cast<std::size_t>(of.keys), static_cast<std::size_t>(*of.d_k), reuse(),
            std::any_of(scalings_.begin(), scalings_.end(), is_cosine)};
  }

  void work(Index p, SaturationState& state, std::uint64_t first, std::uint64_t last) const {
    const RowSampler sampler(law_, point(p).keys, options_.sweep.run.seed, p);
    if (point(p).d_k) {
      measure_scores(point(p), sampler, state, first, last);
    } else {
      measure_logits(point(p), sampler, state, first, last);
    }
    for (RowSample& sample : state.samples) {
      for (std::size_t i = 0; i < kMainMetrics; ++i) {
        sample.block_means[i].add(sample.metrics[i].mean);
      }
    }
  }

  bool keep() const { return !options_.quantiles.empty(); }

  void measure_scores(const Point& of, const RowSampler& sampler, SaturationState& state,
                      std::uint64_t first, std::uint64_t last) const {
    const auto d = static_cast<double>(*of.d_k);
    std::vector<std::optional<double>> factors;
    for (const Scaling& scaling : scalings_) {
      factors.push_back(
          scaling_factor(scaling, d, static_cast<std::uint64_t>(of.keys), options_.entries.sigma));
    }
    RowScores scores(shape_of(of), sampler, first / kBlockTrials, watch_);
    std::vector<double> logits(static_cast<std::size_t>(of.keys));
    RowMeter meter(options_.near_zero);
    for (std::uint64_t trial = first; trial < last;) {
      const std::size_t rows = scores.draw(trial, last);
      trial += rows;
      for (std::size_t row = 0; row < rows; ++row) {
        if (watch_.cancelled()) return;
        for (std::size_t s = 0; s < scalings_.size(); ++s) {
          if (factors[s]) {
            meter.measure(scores.scores(row), *factors[s]);
          } else {
            scale(scalings_[s], scores, row, logits);
            meter.measure(logits);
          }
          state.samples[s].add(meter, keep());
        }
      }
    }
  }

  // Scores under a scaling that is no factor.
  static void scale(const Scaling& scaling, const RowScores& scores, std::size_t row,
                    std::vector<double>& logits) {
    const std::span<const double> of_row = scores.scores(row);
    const std::span<const float> q = scores.query(row);
    const bool cosine = is_cosine(scaling);
    const double length_of_query = cosine ? std::sqrt(dot(q, q)) : 0;
    for (std::size_t j = 0; j < logits.size(); ++j) {
      const double lengths = cosine ? length_of_query * scores.key_lengths()[j] : 0;
      logits[j] = scaled_score(scaling, of_row[j], static_cast<double>(q.size()), lengths);
    }
  }

  void measure_logits(const Point& of, const RowSampler& sampler, SaturationState& state,
                      std::uint64_t first, std::uint64_t last) const {
    std::vector<float> z(static_cast<std::size_t>(of.keys));
    std::vector<double> wide(z.size());
    RowMeter meter(options_.near_zero);
    for (std::uint64_t trial = first; trial < last && !watch_.cancelled(); ++trial) {
      sampler.logits(trial, z);
      std::copy(z.begin(), z.end(), wide.begin());
      for (std::size_t s = 0; s < variances_.size(); ++s) {
        meter.measure(wide, std::sqrt(variances_[s]));
        state.samples[s].add(meter, keep());
      }
    }
  }

  SaturationCase case_of(Index p, std::size_t s) const {
    SaturationCase of{point(p).d_k, point(p).keys, std::nullopt, 0};
    if (!of.d_k) {
      of.logit_variance = variances_[s];
      return of;
    }
    of.scaling = scalings_[s];
    of.logit_variance = logit_variance(scalings_[s], static_cast<double>(*of.d_k),
                                       static_cast<std::uint64_t>(of.keys), options_.entries.sigma);
    return of;
  }

  std::vector<SaturationRow> rows(Index p, const SaturationState& state) const {
    std::vector<SaturationRow> rows;
    for (std::size_t s = 0; s < state.samples.size(); ++s) {
      rows.push_back(saturation_row(options_, case_of(p, s), state.samples[s]));
    }
    return rows;
  }

  const SaturationOptions& options_;
  const Watch& watch_;
  EntryLaw law_;
  std::vector<Scaling> scalings_;
  std::vector<double> variances_;
  std::vector<Point> points_;
};

// Whether anything is set that only dot products have.
bool names_vectors(const SaturationOptions& options) {
  const SaturationOptions usual;
  EntryOptions entries = options.entries, usual_entries;
  return options.d_k != usual.d_k || options.scaling != usual.scaling ||
         options.key_draw != usual.key_draw ||
         first_changed(options_of(entries), options_of(usual_entries)) != nullptr;
}

}  // namespace

SaturationResult saturation(const SaturationOptions& options, const Watch& watch) {
  if (!options.weights.empty()) return head_saturation(options, watch);
  const SaturationSweep sweep(options, watch);
  SaturationResult result;
  if (options.logits == Logits::iid && names_vectors(options)) {
    result.notes.emplace_back(
        "independent logits come from no vectors: d_k, scaling, key_draw and entries are not used");
  }
  result.rows = run_sweep(sweep.task(), options.sweep, watch, result.status);
  result.finding = saturation_finding(result.rows);
  return result;
}

}  // namespace attnlab
