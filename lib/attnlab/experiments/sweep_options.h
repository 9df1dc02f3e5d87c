#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/watch.h"
#include "attnlab/experiments/run_options.h"

namespace attnlab {

// How long, how sure and in which pieces: what every experiment takes.
struct SweepOptions {
  Index samples = 1000;
  double confidence = 0.95;
  std::string shard;
  FilePath resume;
  RunOptions run;

  static constexpr auto fields() {
    using O = SweepOptions;
    return std::tuple(
        field("samples", &O::samples, "pairs or rows a point", {.range = at_least<Index>(2)}),
        field("confidence", &O::confidence, "how often an interval is to hold the truth",
              {.range = {.low = 0.0, .high = 1.0, .low_open = true, .high_open = true}}),
        field("shard", &O::shard,
              "part I of N only, for another machine; attnlab merge joins the parts' JSON files "
              "into what one run gives",
              {.unit = "I/N", .echo = false}),
        field("resume", &O::resume, "go on from the rows of an interrupted run",
              {.unit = "FILE.jsonl", .echo = false}),
        group("Run", &O::run));
  }
};

// The options of a command whose points take `samples` unless told otherwise.
inline SweepOptions usual_sweep(Index samples) {
  SweepOptions options;
  options.samples = samples;
  return options;
}

// How a sweep ended, as its result tells it.
struct SweepStatus {
  bool interrupted = false;
  std::optional<std::string> shard, run;
  std::optional<std::vector<StatePart>> parts;

  static constexpr auto fields() {
    using R = SweepStatus;
    return std::tuple(
        field("interrupted", &R::interrupted, "whether the run was stopped before its last row"),
        field("shard", &R::shard, "I/N when this is one part of a run: its rows are of it alone"),
        field("run", &R::run, "of a part: what its options are known by"),
        field("parts", &R::parts, "what merge needs of a part"));
  }
};

}  // namespace attnlab
