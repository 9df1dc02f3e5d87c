#pragma once

#include <cstdint>
#include <tuple>

#include "attnlab/core/describe.h"

namespace attnlab {

// What every command that computes takes.
struct RunOptions {
  std::uint64_t seed = 0;
  Index threads = 0;

  static constexpr auto fields() {
    return std::tuple(field("seed", &RunOptions::seed, "seed of everything that is drawn"),
                      field("threads", &RunOptions::threads,
                            "threads to use, 0 for all cores; the result does not depend on it",
                            {.range = between<Index>(0, 1024), .echo = false}));
  }
};

}  // namespace attnlab
