#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "attnlab/core/threads.h"
#include "attnlab/stats/merge_tree.h"

namespace attnlab {

// Trials are counted from 0 and done in blocks of this many, the unit of work and of merging. The
// number is part of the result's bits.
inline constexpr std::uint64_t kBlockTrials = 64;

// Blocks of `trials` trials; the last may be short.
constexpr std::uint64_t block_count(std::uint64_t trials) {
  return trials / kBlockTrials + (trials % kBlockTrials != 0 ? 1 : 0);
}

struct BlockRange {
  std::uint64_t first = 0, last = 0;  // [first, last)
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

// Part `shard` (1 to `shards`) of `blocks` blocks: contiguous parts that differ by at most one
// block. Throws InputError unless 1 <= shard <= shards.
BlockRange shard_range(std::uint64_t blocks, std::uint64_t shard, std::uint64_t shards);

// How a run is watched and stopped.
struct RunControl {
  // Set from anywhere (a signal handler too): no new block is begun.
  const std::atomic<bool>* cancel = nullptr;
  // Called with (trials done, trials in all) after each piece of work, one call at a time, from any
  // thread.
  std::function<void(std::uint64_t, std::uint64_t)> progress;

  bool cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

// Runs the blocks of `range` of a run of `trials` trials on at most `threads` threads (0 = all
// cores): work(state, first_trial, last_trial) adds the trials [first_trial, last_trial) of one
// block in order to a copy of `empty`; it may return early once the run is cancelled. The nodes
// that come back merge with those of other ranges of the same run; state and bits are the same for
// any number of threads and any split. A cancelled run lacks blocks: covers() tells. Exceptions of
// work end the run and are thrown here.
template <class State, class Work>
MergeTree<State> run_blocks(BlockRange range, std::uint64_t trials, Index threads,
                            const State& empty, const Work& work, const RunControl& control = {}) {
  // Several blocks at a time where there are many, so that threads seldom meet.
  const std::uint64_t blocks = range.last - range.first;
  const auto pieces = std::max<std::uint64_t>(
      1, std::min<std::uint64_t>(blocks, 64 * static_cast<std::uint64_t>(thread_count(threads))));
  const std::uint64_t total =
      std::min(trials, range.last * kBlockTrials) - std::min(trials, range.first * kBlockTrials);
  MergeTree<State> tree;
  std::mutex mutex;
  std::uint64_t done = 0;
  const auto run_piece = [&](Index piece) {
    const auto i = static_cast<std::uint64_t>(piece);
    const BlockRange part = shard_range(blocks, i + 1, pieces);
    MergeTree<State> own;
    std::uint64_t own_trials = 0;
    for (std::uint64_t b = part.first; b < part.last && !control.cancelled(); ++b) {
      const std::uint64_t block = range.first + b;
      const std::uint64_t first = block * kBlockTrials;
      const std::uint64_t last = std::min(trials, first + kBlockTrials);
      State state = empty;
      work(state, first, last);
      // Work may have ended early.
      if (control.cancelled()) break;
      own.add_block(block, std::move(state));
      own_trials += last - first;
    }
    const std::lock_guard lock(mutex);
    tree.add_all(own);
    done += own_trials;
    if (control.progress && own_trials > 0) control.progress(done, total);
  };
  if (blocks > 0) parallel_for(threads, static_cast<Index>(pieces), run_piece);
  return tree;
}

}  // namespace attnlab
