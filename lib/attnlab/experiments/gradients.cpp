#include "attnlab/experiments/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attnlab/core/dot.h"
#include "attnlab/core/dot_rows.h"
#include "attnlab/core/memory.h"
#include "attnlab/experiments/gradient_state.h"
#include "attnlab/experiments/row_sampler.h"
#include "attnlab/experiments/scaling_list.h"
#include "attnlab/experiments/sweep.h"
#include "attnlab/stats/gradient_theory.h"
#include "attnlab/stats/interval.h"
#include "attnlab/stats/quantile.h"

namespace attnlab {
namespace {

// A row is dead when its gradient is below this part of the root mean square.
constexpr double kDeadPart = 0.01;

// The root of a mean of squares, with the t interval of the logarithm of the mean: squares that a
// few rows dominate are far from normal, and their root is not negative.
template <class Columns>
void set_columns(Columns& columns, const std::vector<double>& mean_squares, double confidence,
                 bool has_interval) {
  const Moments moments = moments_of(mean_squares);
  const Estimate mean = mean_estimate(moments, confidence);
  columns.rms = std::sqrt(moments.mean);
  if (has_interval && mean.low && moments.mean > 0) {
    const double reach = (*mean.high - moments.mean) / moments.mean;
    columns.ci_low = columns.rms * std::exp(-reach / 2);
    columns.ci_high = columns.rms * std::exp(reach / 2);
  }
  // A root keeps the order, but not what lies between two order statistics.
  std::vector<double> roots = mean_squares;
  for (double& root : roots) root = std::sqrt(root);
  const double bound = kDeadPart * columns.rms;
  const auto dead =
      std::count_if(roots.begin(), roots.end(), [bound](double root) { return root < bound; });
  columns.dead_share = static_cast<double>(dead) / static_cast<double>(roots.size());
  columns.median = median_of(std::move(roots));
}

bool has_fourth_moment(const EntryLaw& law) { return law.kurtosis().has_value(); }

class GradientsSweep {
 public:
  GradientsSweep(const GradientsOptions& options, const Watch& watch)
      : options_(options),
        watch_(watch),
        law_(entry_law(options.entries)),
        scalings_(parse_scalings(options.scaling)) {
    require_list(options.d_k, "d_k");
    require_list(options.keys, "keys");
    for (const Scaling& scaling : scalings_) {
      if (is_function(scaling)) {
        throw InputError("", "scaling", scaling_name(scaling),
                         "is no factor on q.k, which gradients are measured for");
      }
    }
    for (const Index d_k : options.d_k) {
      for (const Index keys : options.keys) points_.push_back({d_k, keys});
    }
    require_room();
  }

  SweepTask<GradientState, GradientsRow> task() const {
    SweepTask<GradientState, GradientsRow> task;
    task.points = std::ssize(points_);
    task.rows_a_point = std::ssize(scalings_);
    task.trials = static_cast<std::uint64_t>(options_.sweep.samples);
    task.cost = [this](Index p) {
      return static_cast<double>(point(p).keys) * static_cast<double>(point(p).d_k + 10);
    };
    task.empty = [this](Index) {
      return GradientState{std::vector<GradientSample>(scalings_.size())};
    };
    task.work = [this](Index p, GradientState& state, std::uint64_t first, std::uint64_t last) {
      work(p, state, first, last);
    };
    task.is_row = [this](Index p, Index i, const GradientsRow& row) {
      return row.d_k == point(p).d_k && row.keys == point(p).keys &&
             row.scaling == scaling_name(scalings_[static_cast<std::size_t>(i)]);
    };
    task.rows = [this](Index p, const GradientState& state) { return rows(p, state); };
    return task;
  }

 private:
  struct Point {
    Index d_k, keys;
  };

  const Point& point(Index p) const { return points_[static_cast<std::size_t>(p)]; }

  void require_room() const {
    std::uint64_t largest = 0;
    for (const Point& p : points_) {
      largest = std::max(largest, static_cast<std::uint64_t>(p.keys) *
                                      static_cast<std::uint64_t>(p.d_k + 16) * sizeof(float));
    }
    const auto threads = static_cast<std::uint64_t>(thread_count(options_.sweep.run.threads));
    require_memory(largest * threads + 2 * sizeof(double) * kGradients * scalings_.size() *
                                           static_cast<std::uint64_t>(options_.sweep.samples),
                   "the rows of a point");
  }

  double factor(const Scaling& scaling, const Point& of) const {
    return *scaling_factor(scaling, static_cast<double>(of.d_k),
                           static_cast<std::uint64_t>(of.keys), options_.entries.sigma);
  }

  // Keys and values that stay in the first cache from the draw to the dot product.
  static std::size_t vectors_at_once(std::size_t d) {
    constexpr std::size_t kEntries = 2048;
    return kEntries / std::min(std::max<std::size_t>(1, d), kEntries);
  }

  void work(Index p, GradientState& state, std::uint64_t first, std::uint64_t last) const {
    const auto n = static_cast<std::size_t>(point(p).keys);
    const auto d = static_cast<std::size_t>(point(p).d_k);
    const RowSampler sampler(law_, point(p).keys, options_.sweep.run.seed, p);
    std::vector<float> q(d), keys(n * d), values(std::min(n, vectors_at_once(d)) * d),
        grad_output(d);
    std::vector<double> scores(n), grad_weights(n);
    RowGradients gradients;
    for (std::uint64_t trial = first; trial < last && !watch_.cancelled(); ++trial) {
      sampler.query(trial, q);
      sampler.cotangent(trial, grad_output);
      for (std::size_t j = 0; j < n && !watch_.cancelled(); j += vectors_at_once(d)) {
        const std::size_t count = std::min(vectors_at_once(d), n - j);
        const auto k = std::span(keys).subspan(j * d, count * d);
        const auto v = std::span(values).first(count * d);
        sampler.keys(trial, j, d, k);
        sampler.values(trial, j, d, v);
        dot_with_rows(q, k, std::span(scores).subspan(j, count));
        dot_with_rows(grad_output, v, std::span(grad_weights).subspan(j, count));
      }
      for (std::size_t s = 0; s < scalings_.size(); ++s) {
        const auto squares = gradients.mean_squares(factor(scalings_[s], point(p)), q, keys, scores,
                                                    grad_weights, dot(grad_output, grad_output));
        for (std::size_t i = 0; i < kGradients; ++i) {
          state.samples[s].mean_squares[i].push_back(squares[i]);
        }
      }
    }
  }

  std::vector<GradientsRow> rows(Index p, const GradientState& state) const {
    std::vector<GradientsRow> rows;
    for (std::size_t s = 0; s < scalings_.size(); ++s) {
      GradientsRow row;
      row.d_k = point(p).d_k;
      row.keys = point(p).keys;
      row.scaling = scaling_name(scalings_[s]);
      const auto& squares = state.samples[s].mean_squares;
      row.samples = std::ssize(squares[0]);
      const auto d = static_cast<double>(row.d_k);
      const auto n = static_cast<std::uint64_t>(row.keys);
      row.logit_variance = logit_variance(scalings_[s], d, n, law_.sigma);
      // The gradients to q and k are products of entries, that to v is of the cotangent alone.
      const bool finite = has_fourth_moment(law_);
      set_columns(row.q, squares[0], options_.sweep.confidence, finite);
      set_columns(row.k, squares[1], options_.sweep.confidence, finite);
      set_columns(row.v, squares[2], options_.sweep.confidence, true);
      if (law_.distribution == Distribution::normal) {
        const GradientTheory theory = gradient_theory(
            {n, d, d, factor(scalings_[s], point(p)), law_.sigma, law_.sigma, law_.sigma});
        row.q.theory = theory.rms_q;
        row.k.theory = theory.rms_k;
        row.v.theory = theory.rms_v;
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  const GradientsOptions& options_;
  const Watch& watch_;
  EntryLaw law_;
  std::vector<Scaling> scalings_;
  std::vector<Point> points_;
};

// What was found at the largest d_k and the last number of keys.
std::string finding_of(const std::vector<GradientsRow>& rows) {
  if (rows.empty()) return "";
  const Index keys = rows.back().keys;
  const Index most = std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
                       return a.d_k < b.d_k;
                     })->d_k;
  std::string text =
      fmt::format("At d_k {} and {} keys the gradient of an element of q has", most, keys);
  const char* separator = " ";
  Index held = 0, intervals = 0;
  for (const GradientsRow& row : rows) {
    if (row.d_k == most && row.keys == keys) {
      text += fmt::format(
          "{}{} the root mean square {:.3g}, the median {:.3g} and {:.0f}% dead rows", separator,
          scaling_phrase(row.scaling), row.q.rms, row.q.median.value_or(0), 100 * row.q.dead_share);
      separator = "; ";
    }
    if (!row.q.ci_low || !row.q.theory) continue;
    ++intervals;
    held += *row.q.ci_low <= *row.q.theory && *row.q.theory <= *row.q.ci_high ? 1 : 0;
  }
  if (intervals > 0) {
    text += fmt::format("; {} of {} intervals of its root mean square hold the theory", held,
                        intervals);
  }
  return text + ".";
}

}  // namespace

GradientsResult gradients(const GradientsOptions& options, const Watch& watch) {
  const GradientsSweep sweep(options, watch);
  GradientsResult result;
  result.rows = run_sweep(sweep.task(), options.sweep, watch, result.status);
  result.finding = finding_of(result.rows);
  if (!has_fourth_moment(entry_law(options.entries))) {
    result.notes.emplace_back(
        "intervals of rms_grad_q and rms_grad_k not valid: the fourth moment of an entry is "
        "infinite");
  }
  return result;
}

}  // namespace attnlab
