#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/watch.h"
#include "attnlab/experiments/sweep_options.h"
#include "attnlab/experiments/sweep_resume.h"
#include "attnlab/stats/monte_carlo.h"

namespace attnlab {

// An experiment: points measured one after the other, each by independent trials in blocks, which
// give the same bits for any number of threads and any split into shards. State is what a point is
// measured by: void merge(const State&), std::uint64_t trials() const, std::vector<double> values()
// const and, on an empty one, void set_values(std::span<const double>), which throws InputError for
// what is no such state.
template <class State, class Row>
struct SweepTask {
  Index points = 0;
  Index rows_a_point = 1;
  std::uint64_t trials = 0;  // a point
  // How long a point takes, in any unit.
  std::function<double(Index point)> cost;
  std::function<State(Index point)> empty;
  // Adds the trials [first, last) of one block, in order. May stop when the run is cancelled.
  std::function<void(Index point, State& state, std::uint64_t first, std::uint64_t last)> work;
  // What the state of a point says, rows_a_point rows of it.
  std::function<std::vector<Row>(Index point, const State& state)> rows;
  // Whether a row is the i-th of a point: rows of another run must not pass.
  std::function<bool(Index point, Index i, const Row& row)> is_row;
};

struct Shard {
  std::uint64_t index = 1, count = 1;
};

// "2/4"; all there is when empty. Throws InputError for another text, or more parts than blocks of
// trials.
Shard parse_shard(const std::string& text, std::uint64_t trials);

// Throws InputError for options that cannot stand together, and for parts of other points than the
// `points` there are.
void check_sweep(const SweepOptions& options, const Watch& watch, Index points);

// Trials that the blocks of a part hold of a run of `trials`.
std::uint64_t trials_in(const StatePart& part, std::uint64_t trials);

// The parts of one point joined, when all its blocks are there. Throws InputError otherwise.
template <class State>
State join_parts(const std::vector<StatePart>& parts, Index point, std::uint64_t trials,
                 const State& empty) {
  const std::uint64_t blocks = block_count(trials);
  MergeTree<State> tree;
  for (const StatePart& part : parts) {
    if (part.point != point) continue;
    if (part.first_block < 0 || part.level < 0 || part.level > 62) {
      throw InputError("", "parts", "", "hold a block that is no place of a run");
    }
    State state = empty;
    state.set_values(part.state);
    if (state.trials() != trials_in(part, trials)) {
      throw InputError("", "parts", std::to_string(state.trials()) + " trials",
                       "need " + std::to_string(trials_in(part, trials)) + " in these blocks");
    }
    tree.add({static_cast<std::uint64_t>(part.first_block), static_cast<unsigned>(part.level),
              std::move(state)});
  }
  if (!tree.covers(blocks)) {
    throw InputError("", "parts", std::to_string(tree.blocks()) + " blocks",
                     "need all " + std::to_string(blocks) + ", those of every shard");
  }
  return tree.result(empty);
}

// Runs the task: rows of `resume` first, then each point's as soon as it is measured. Throws
// InputError.
template <class State, class Row>
std::vector<Row> run_sweep(const SweepTask<State, Row>& task, const SweepOptions& options,
                           const Watch& watch, SweepStatus& status) {
  check_sweep(options, watch, task.points);
  const Shard shard = parse_shard(options.shard, task.trials);
  const std::uint64_t blocks = block_count(task.trials);
  const BlockRange range = shard_range(blocks, shard.index, shard.count);
  if (!options.shard.empty()) {
    status.shard = options.shard;
    status.run = watch.run;
    status.parts.emplace();
  }

  std::vector<Row> rows;
  const auto tell = [&](Row row) {
    rows.push_back(std::move(row));
    if (watch.row) watch.row(result_of(rows.back()));
  };
  Index first_point = 0;
  if (!options.resume.empty()) {
    const Index most = task.points * task.rows_a_point;
    auto done = rows_done<Row>(options.resume.path, watch, most);
    first_point = std::ssize(done) / task.rows_a_point;
    done.resize(static_cast<std::size_t>(first_point * task.rows_a_point));
    for (Index i = 0; i < std::ssize(done); ++i) {
      Row& row = done[static_cast<std::size_t>(i)];
      if (!task.is_row(i / task.rows_a_point, i % task.rows_a_point, row)) {
        throw InputError(options.resume.path, "row " + std::to_string(i + 1), "",
                         "is not the row that stands there in this run");
      }
      tell(std::move(row));
    }
  }

  std::vector<double> costs;
  for (Index p = 0; p < task.points; ++p) costs.push_back(p < first_point ? 0 : task.cost(p));
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  double before = 0;
  for (Index point = first_point; point < task.points; ++point) {
    const State empty = task.empty(point);
    State state = empty;
    if (watch.parts != nullptr) {
      state = join_parts(*watch.parts, point, task.trials, empty);
    } else {
      const double cost = costs[static_cast<std::size_t>(point)];
      RunControl control{watch.cancel, {}};
      if (watch.progress) {
        control.progress = [&](std::uint64_t done, std::uint64_t all) {
          const double share = static_cast<double>(done) / static_cast<double>(all);
          watch.progress((before + cost * share) / total);
        };
      }
      const auto work = [&](State& block, std::uint64_t first, std::uint64_t last) {
        task.work(point, block, first, last);
      };
      const MergeTree<State> tree =
          run_blocks(range, task.trials, options.run.threads, empty, work, control);
      before += cost;
      if (tree.blocks() != range.last - range.first) {
        status.interrupted = true;
        break;
      }
      if (status.parts) {
        for (const auto& node : tree.nodes()) {
          status.parts->push_back({point, static_cast<Index>(node.first_block),
                                   static_cast<Index>(node.level), node.state.values()});
        }
      }
      state = tree.result(empty);
    }
    for (Row& row : task.rows(point, state)) tell(std::move(row));
  }
  return rows;
}

}  // namespace attnlab
