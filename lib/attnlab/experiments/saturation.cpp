#include "attnlab/experiments/saturation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "attnlab/core/buffer.h"
#include "attnlab/core/dot.h"
#include "attnlab/core/dot_matrix.h"
#include "attnlab/core/dot_rows.h"
#include "attnlab/core/memory.h"
#include "attnlab/experiments/head_saturation.h"
#include "attnlab/experiments/row_sampler.h"
#include "attnlab/experiments/saturation_rows.h"
#include "attnlab/experiments/scaling_list.h"
#include "attnlab/experiments/sweep.h"

namespace attnlab {
namespace {

// Numbers that are written before they are read.
template <class T>
class Numbers {
 public:
  Numbers() = default;
  explicit Numbers(std::size_t count) : memory_(count, sizeof(T)), count_(count) {}
  std::size_t size() const { return count_; }
  std::span<T> all() const { return {static_cast<T*>(memory_.data()), count_}; }
  std::span<T> part(std::size_t first, std::size_t count) const {
    return all().subspan(first, count);
  }

 private:
  Buffer memory_;
  std::size_t count_ = 0;
};

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
      const std::uint64_t rows = rows_at_once(keys, d);
      // Keys that are reused stay in memory, a query is there in float64 too, and a key of a row
      // has its score, its length, and what else a logit takes.
      largest = std::max(largest, keys * ((reuse() ? d : 0) * sizeof(float) + 8 * rows + 80) +
                                      rows * d * (sizeof(float) + sizeof(double)));
    }
    const auto threads = static_cast<std::uint64_t>(thread_count(options_.sweep.run.threads));
    const auto kept = 1 + (options_.quantiles.empty() ? 0 : kMainMetrics);
    require_memory(largest * threads + 2 * sizeof(double) * kept *
                                           static_cast<std::uint64_t>(options_.sweep.samples) *
                                           static_cast<std::uint64_t>(rows_a_point()),
                   "the rows of a point");
  }

  // Rows whose scores are computed together, of keys that are reused: each key is widened once for
  // all of them.
  std::uint64_t rows_at_once(std::uint64_t n, std::uint64_t d) const {
    constexpr std::uint64_t kNumbers = 1 << 18, kFew = 4;
    return reuse() ? std::clamp(kNumbers / std::max(n, d), kFew, kBlockTrials) : 1;
  }

  // What the rows of one block are drawn and measured with.
  struct Bench {
    std::size_t n, d;
    Numbers<float> q, k, z;
    Numbers<double> wide_q, scores, key_lengths, logits;
    // Of each scaling what the scores are multiplied by, where that is all.
    std::vector<std::optional<double>> factors;
  };

  Bench bench_of(const Point& of) const {
    const auto n = static_cast<std::size_t>(of.keys);
    const auto d = static_cast<std::size_t>(of.d_k.value_or(0));
    const std::size_t rows = of.d_k ? rows_at_once(n, d) : 1;
    Bench bench{n, d, {}, {}, {}, {}, Numbers<double>(rows * n), {}, Numbers<double>(n), {}};
    if (!of.d_k) {
      bench.z = Numbers<float>(n);
      for (const double v : variances_) bench.factors.emplace_back(std::sqrt(v));
      return bench;
    }
    for (const Scaling& scaling : scalings_) {
      bench.factors.push_back(
          scaling_factor(scaling, static_cast<double>(d), n, options_.entries.sigma));
    }
    bench.q = Numbers<float>(rows * d);
    bench.k = Numbers<float>((reuse() ? n : std::min(n, keys_at_once(d))) * d);
    if (reuse()) bench.wide_q = Numbers<double>(rows * d);
    if (lengths_count()) bench.key_lengths = Numbers<double>(n);
    return bench;
  }

  // Whether a scaling wants the lengths of q and k.
  bool lengths_count() const { return std::any_of(scalings_.begin(), scalings_.end(), is_cosine); }

  // Keys that stay in the first cache from the draw to the dot product.
  static std::size_t keys_at_once(std::size_t d) {
    constexpr std::size_t kEntries = 4096;
    return kEntries / std::min(std::max<std::size_t>(1, d), kEntries);
  }

  // Calls f(first, count) for the n keys, `most` at a time, until the run is cancelled.
  template <class F>
  void for_each_chunk(std::size_t n, std::size_t most, const F& f) const {
    for (std::size_t first = 0; first < n && !watch_.cancelled(); first += most) {
      f(first, std::min(most, n - first));
    }
  }

  void work(Index p, SaturationState& state, std::uint64_t first, std::uint64_t last) const {
    const RowSampler sampler(law_, point(p).keys, options_.sweep.run.seed, p);
    Bench bench = bench_of(point(p));
    const bool drawn_at_once = point(p).d_k && reuse();
    if (drawn_at_once) draw_keys(sampler, first / kBlockTrials, bench);
    RowMeter meter(options_.near_zero);
    const std::uint64_t most = bench.scores.size() / bench.n;
    for (std::uint64_t trial = first; trial < last; trial += most) {
      const std::uint64_t rows = std::min(most, last - trial);
      if (drawn_at_once) {
        draw_rows(sampler, trial, rows, bench);
      } else if (point(p).d_k) {
        draw_row(sampler, trial, bench);
      } else {
        sampler.logits(trial, bench.z.all());
        std::ranges::copy(bench.z.all(), bench.scores.all().begin());
      }
      for (std::uint64_t row = 0; row < rows; ++row) {
        if (watch_.cancelled()) return;
        measure(row, bench, meter, state);
      }
    }
    for (RowSample& sample : state.samples) {
      for (std::size_t i = 0; i < kMainMetrics; ++i) {
        sample.block_means[i].add(sample.metrics[i].mean);
      }
    }
  }

  // The keys that the rows of a block share.
  void draw_keys(const RowSampler& sampler, std::uint64_t block, Bench& bench) const {
    for_each_chunk(bench.n, keys_at_once(bench.d), [&](std::size_t j, std::size_t count) {
      const auto k = bench.k.part(j * bench.d, count * bench.d);
      sampler.keys(block, j, bench.d, k);
      measure_keys(k, j, bench);
    });
  }

  void measure_keys(std::span<const float> k, std::size_t first, Bench& bench) const {
    if (bench.key_lengths.size() == 0) return;
    const auto lengths = bench.key_lengths.part(first, k.size() / bench.d);
    dot_of_rows(k, k, bench.d, lengths);
    for (double& length : lengths) length = std::sqrt(length);
  }

  // q.k of the queries of several rows with the keys that are there.
  void draw_rows(const RowSampler& sampler, std::uint64_t trial, std::uint64_t rows,
                 Bench& bench) const {
    const auto q = bench.q.part(0, rows * bench.d);
    sampler.queries(trial, bench.d, q);
    const auto wide_q = bench.wide_q.part(0, q.size());
    std::ranges::copy(q, wide_q.begin());
    // Not longer at a time than a user waits who has cancelled.
    constexpr std::size_t kProducts = std::size_t{1} << 26, kLeast = 64;
    const std::size_t most = std::max(kLeast, kProducts / q.size());
    for_each_chunk(bench.n, most, [&](std::size_t j, std::size_t count) {
      dot_matrix(wide_q, bench.k.part(j * bench.d, count * bench.d), bench.d,
                 bench.scores.all().subspan(j), bench.n);
    });
  }

  // q.k of the row's query with keys of its own.
  void draw_row(const RowSampler& sampler, std::uint64_t trial, Bench& bench) const {
    sampler.queries(trial, bench.d, bench.q.all());
    for_each_chunk(bench.n, keys_at_once(bench.d), [&](std::size_t j, std::size_t count) {
      const auto k = bench.k.part(0, count * bench.d);
      sampler.keys(trial, j, bench.d, k);
      dot_with_rows(bench.q.all(), k, bench.scores.part(j, count));
      measure_keys(k, j, bench);
    });
  }

  // One of the rows at hand, under every scaling.
  void measure(std::size_t row, Bench& bench, RowMeter& meter, SaturationState& state) const {
    const bool keep = !options_.quantiles.empty();
    const auto scores = bench.scores.part(row * bench.n, bench.n);
    for (std::size_t s = 0; s < state.samples.size(); ++s) {
      if (const std::optional<double> factor = bench.factors[s]) {
        meter.measure(scores, *factor);
      } else {
        const auto q = bench.q.part(row * bench.d, bench.d);
        scale(scalings_[s], q, scores, bench);
        meter.measure(bench.logits.all());
      }
      state.samples[s].add(meter, keep);
    }
  }

  static void scale(const Scaling& scaling, std::span<const float> q,
                    std::span<const double> scores, Bench& bench) {
    const bool cosine = is_cosine(scaling);
    const double length_of_query = cosine ? std::sqrt(dot(q, q)) : 0;
    for (std::size_t j = 0; j < bench.n; ++j) {
      const double lengths = cosine ? length_of_query * bench.key_lengths.all()[j] : 0;
      bench.logits.all()[j] =
          scaled_score(scaling, scores[j], static_cast<double>(bench.d), lengths);
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
