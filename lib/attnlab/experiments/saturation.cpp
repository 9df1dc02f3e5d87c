#include "attnlab/experiments/saturation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attnlab/core/dot.h"
#include "attnlab/core/dot_rows.h"
#include "attnlab/core/memory.h"
#include "attnlab/experiments/head_saturation.h"
#include "attnlab/experiments/row_sampler.h"
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
      const auto keys = static_cast<std::uint64_t>(p.keys);
      const auto d = static_cast<std::uint64_t>(p.d_k.value_or(1));
      // Keys that are reused stay in memory; a logit has a few numbers of its own.
      largest = std::max(largest, keys * ((reuse() ? d : 0) * sizeof(float) + 64));
    }
    const auto threads = static_cast<std::uint64_t>(thread_count(options_.sweep.run.threads));
    const auto kept = 1 + (options_.quantiles.empty() ? 0 : kMainMetrics);
    require_memory(largest * threads + 2 * sizeof(double) * kept *
                                           static_cast<std::uint64_t>(options_.sweep.samples) *
                                           static_cast<std::uint64_t>(rows_a_point()),
                   "the rows of a point");
  }

  // Keys that stay in the first cache from the draw to the dot product.
  static std::size_t keys_at_once(std::size_t d) {
    constexpr std::size_t kEntries = 4096;
    return kEntries / std::min(std::max<std::size_t>(1, d), kEntries);
  }

  // Calls f(first, count) for the n keys [d] until the run is cancelled.
  template <class F>
  void for_each_chunk(std::size_t n, std::size_t d, const F& f) const {
    const std::size_t most = keys_at_once(d);
    for (std::size_t first = 0; first < n && !watch_.cancelled(); first += most) {
      f(first, std::min(most, n - first));
    }
  }

  // What the rows of one block are drawn and measured with.
  struct Bench {
    std::vector<float> q, k, z;
    std::vector<double> scores, lengths, logits;
  };

  void work(Index p, SaturationState& state, std::uint64_t first, std::uint64_t last) const {
    const auto n = static_cast<std::size_t>(point(p).keys);
    const auto d = static_cast<std::size_t>(point(p).d_k.value_or(0));
    const RowSampler sampler(law_, point(p).keys, options_.sweep.run.seed, p);
    Bench bench;
    bench.q.resize(d);
    bench.k.resize((reuse() ? n : std::min(n, keys_at_once(d))) * d);
    bench.z.resize(point(p).d_k ? 0 : n);
    bench.scores.resize(n);
    bench.lengths.resize(n);
    bench.logits.resize(n);
    if (point(p).d_k && reuse()) {
      for_each_chunk(n, d, [&](std::size_t j, std::size_t count) {
        sampler.keys(first / kBlockTrials, j, d, std::span(bench.k).subspan(j * d, count * d));
      });
    }
    RowMeter meter(options_.near_zero);
    const bool keep = !options_.quantiles.empty();
    for (std::uint64_t trial = first; trial < last; ++trial) {
      if (watch_.cancelled()) return;
      if (point(p).d_k) {
        draw_scores(sampler, trial, bench);
      } else {
        sampler.logits(trial, bench.z);
      }
      for (std::size_t s = 0; s < state.samples.size(); ++s) {
        if (point(p).d_k) {
          scale(scalings_[s], point(p), bench);
        } else {
          const double deviation = std::sqrt(variances_[s]);
          for (std::size_t j = 0; j < n; ++j) {
            bench.logits[j] = deviation * static_cast<double>(bench.z[j]);
          }
        }
        meter.measure(bench.logits);
        state.samples[s].add(meter, keep);
      }
    }
    for (RowSample& sample : state.samples) {
      for (std::size_t i = 0; i < kMainMetrics; ++i) {
        sample.block_means[i].add(sample.metrics[i].mean);
      }
    }
  }

  // q.k of the row's query with every key, and the product of their lengths where it is needed.
  void draw_scores(const RowSampler& sampler, std::uint64_t trial, Bench& bench) const {
    sampler.query(trial, bench.q);
    const std::size_t d = bench.q.size();
    const bool lengths = std::any_of(scalings_.begin(), scalings_.end(), is_cosine);
    const double length_of_query = lengths ? std::sqrt(dot(bench.q, bench.q)) : 0;
    for_each_chunk(bench.scores.size(), d, [&](std::size_t j, std::size_t count) {
      const auto k = std::span(bench.k).subspan(reuse() ? j * d : 0, count * d);
      if (!reuse()) sampler.keys(trial, j, d, k);
      dot_with_rows(bench.q, k, std::span(bench.scores).subspan(j, count));
      if (!lengths) return;
      const auto squares = std::span(bench.lengths).subspan(j, count);
      dot_of_rows(k, k, d, squares);
      for (double& length : squares) length = length_of_query * std::sqrt(length);
    });
  }

  void scale(const Scaling& scaling, const Point& of, Bench& bench) const {
    const auto d = static_cast<double>(*of.d_k);
    const std::optional<double> factor =
        scaling_factor(scaling, d, static_cast<std::uint64_t>(of.keys), options_.entries.sigma);
    for (std::size_t j = 0; j < bench.logits.size(); ++j) {
      bench.logits[j] = factor ? *factor * bench.scores[j]
                               : scaled_score(scaling, bench.scores[j], d, bench.lengths[j]);
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
