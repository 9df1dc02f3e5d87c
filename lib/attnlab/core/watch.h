#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

// The state of some blocks of one point of an experiment: what a shard leaves for merge.
struct StatePart {
  Index point = 0;
  Index first_block = 0;
  Index level = 0;
  std::vector<double> state;

  static constexpr auto fields() {
    using P = StatePart;
    return std::tuple(field("point", &P::point, "point of the experiment, counted from 0"),
                      field("first_block", &P::first_block, "first of its blocks of trials"),
                      field("level", &P::level, "2^level blocks"),
                      field("state", &P::state, "what was measured, exact"));
  }
};

// How a long run is watched, stopped and pieced together.
struct Watch {
  // Set from anywhere, a signal handler too: the run ends with what it has.
  const std::atomic<bool>* cancel = nullptr;
  // Told the share of the work that is done, one call at a time, from any thread.
  std::function<void(double)> progress;
  // Told each row as soon as it is known, in order.
  std::function<void(const std::vector<ResultRef>&)> row;
  // What identifies the run: rows to go on from must carry it. Empty: they need not.
  std::string run;
  // States measured elsewhere, of all blocks of all points: nothing is measured here.
  const std::vector<StatePart>* parts = nullptr;

  bool cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

}  // namespace attnlab
