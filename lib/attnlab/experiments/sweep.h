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
// measured by: void merge(const State&), std::vector<double> values() const and, on an empty one,
// void set_values(std::span<const double>), which throws InputError for what is no such state.
template <class State, class Row>
struct SweepTask {
  Index points = 0;
  Index rows_a_point = 1;
  std::uint64_t trials = 0;  // a point
  // How long a point takes, in any unit.
  std::function<double(Index point)> cost;
  std::function<State(Index point)> empty;
  // Adds the trials [first, last) of one block, in order.
  std::function<void(Index point, State& state, std::uint64_t first, std::uint64_t last)> work;
  // What the state of a point says, rows_a_point rows of it.
  std::function<std::vector<Row>(Index point, const State& state)> rows;
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

// The parts of one point joined, when all its blocks are there. Throws InputError otherwise.
template <class State>
State join_parts(const std::vector<StatePart>& parts, Index point, std::uint64_t blocks,
                 const State& empty) {
  MergeTree<State> tree;
  for (const StatePart& part : parts) {
    if (part.point != point) continue;
    if (part.first_block < 0 || part.level < 0 || part.level > 62) {
      throw InputError("", "parts", "", "hold a block that is no place of a run");
    }
    State state = empty;
    state.set_values(part.state);
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
    for (Row& row : done) tell(std::move(row));
  }

  std::vector<double> costs;
  for (Index p = 0; p < task.points; ++p) costs.push_back(p < first_point ? 0 : task.cost(p));
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  double before = 0;
  for (Index point = first_point; point < task.points; ++point) {
    const State empty = task.empty(point);
    State state = empty;
    if (watch.parts != nullptr) {
      state = join_parts(*watch.parts, point, blocks, empty);
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
