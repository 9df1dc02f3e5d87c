#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attnlab/core/watch.h"
#include "attnlab/experiments/bench_case.h"

namespace attnlab {

// The FMA peak as probes of it find it between the calls that are held against it. A probe that the
// system holds up is too low, never too high: the best of them counts, and there are many.
class PeakProbes {
 public:
  static constexpr int kLeast = 20, kMost = 500;

  // `probe` gives operations a second.
  explicit PeakProbes(std::function<double()> probe) : probe_(std::move(probe)) {}

  // After a call of so many seconds: a twentieth of its time is probed, at least once, since a
  // probe alone may meet a neighbour's burst of work.
  void after_call(double seconds);
  // After the last: until there are kLeast, and as long as the calls did better than the best of
  // them, up to kMost.
  void complete(double reached, const Watch& watch);

  double best() const { return best_; }
  int count() const { return count_; }

 private:
  void probe();

  std::function<double()> probe_;
  double best_ = 0;
  int count_ = 0;
};

// What was measured of one call.
struct BenchMeasured {
  std::vector<double> seconds;          // of each call
  double peak = 0;                      // operations a second, of multiply-adds in registers
  std::optional<std::uint64_t> memory;  // bytes that the first call took
};

// Measures calls that differ in their threads alone, in turns: a round has one of each, with probes
// of the peak after it, so that all see the processor at the same clock. Goes on until each was
// called `repeat` times and has had `min_time` seconds, or the run is cancelled. `progress` is told
// the share that is done.
std::vector<BenchMeasured> measure_in_turns(std::span<const BenchCase> cases, std::uint64_t seed,
                                            Index repeat, double min_time, const Watch& watch,
                                            const std::function<void(double)>& progress);

}  // namespace attnlab
