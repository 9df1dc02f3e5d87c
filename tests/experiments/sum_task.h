#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/experiments/state_values.h"
#include "attnlab/experiments/sweep.h"

namespace attnlab {

// The sum of the trial numbers and how many there were: small enough to check by hand.
struct SumState {
  double sum = 0, count = 0;

  void merge(const SumState& other) {
    sum += other.sum;
    count += other.count;
  }
  std::uint64_t trials() const { return static_cast<std::uint64_t>(count); }
  std::vector<double> values() const { return {sum, count}; }
  void set_values(std::span<const double> values) {
    StateReader reader(values);
    sum = reader.take(1)[0];
    count = reader.take(1)[0];
    reader.finish();
  }
};

struct SumRow {
  Index point = 0;
  std::string half;
  std::optional<double> sum;
  std::optional<Index> count;
  std::vector<double> list;

  static constexpr auto fields() {
    using R = SumRow;
    return std::tuple(field("point", &R::point, ""), field("half", &R::half, ""),
                      field("sum", &R::sum, ""), field("count", &R::count, ""),
                      field("list", &R::list, ""));
  }
};

// Two rows a point; of each it adds up trial + 1000 point. `begun` counts the blocks.
inline SweepTask<SumState, SumRow> task_of(Index points, std::uint64_t trials,
                                           std::atomic<int>* begun = nullptr) {
  SweepTask<SumState, SumRow> task;
  task.points = points;
  task.rows_a_point = 2;
  task.trials = trials;
  task.cost = [](Index) { return 1.0; };
  task.empty = [](Index) { return SumState{}; };
  task.work = [begun](Index point, SumState& state, std::uint64_t first, std::uint64_t last) {
    if (begun != nullptr) ++*begun;
    for (std::uint64_t trial = first; trial < last; ++trial) {
      state.sum += static_cast<double>(trial) + 1000 * static_cast<double>(point);
      ++state.count;
    }
  };
  task.rows = [](Index point, const SumState& state) {
    const auto count = static_cast<Index>(state.count);
    return std::vector<SumRow>{{point, "first", state.sum, count, {1, 2}},
                               {point, "second", std::nullopt, std::nullopt, {}}};
  };
  task.is_row = [](Index point, Index i, const SumRow& row) {
    return row.point == point && row.half == (i == 0 ? "first" : "second");
  };
  return task;
}

struct Ran {
  std::vector<SumRow> rows;
  SweepStatus status;
};

inline Ran ran(const SweepTask<SumState, SumRow>& task, const SweepOptions& options = {},
               const Watch& watch = {}) {
  Ran result;
  result.rows = run_sweep(task, options, watch, result.status);
  return result;
}

inline SweepOptions part_of(const std::string& shard) {
  SweepOptions options;
  options.shard = shard;
  return options;
}

inline SweepOptions resuming(const std::string& path) {
  SweepOptions options;
  options.resume = FilePath{path};
  return options;
}

// The sum of 0 .. trials - 1, and 1000 point for each.
inline double expected_sum(double trials, double point) {
  return trials * (trials - 1) / 2 + 1000 * point * trials;
}

}  // namespace attnlab
