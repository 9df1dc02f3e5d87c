#include "attnlab/experiments/bench_turns.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "attnlab/core/fma_rate.h"
#include "attnlab/core/peak_memory.h"

namespace attnlab {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A call on its threads, and what was measured of it.
class Contender {
 public:
  Contender(const BenchCall& call, const BenchCase& of, BenchOutcome& kept)
      : call_(call),
        of_(of),
        kept_(kept),
        probes_([threads = of.threads] { return fma_rate(threads); }) {
    kept_ = {};  // the memory that another has left would not count
    measured_.memory = peak_memory([this] { make_call(); });
  }

  void take_turn() {
    const Clock::time_point start = Clock::now();
    make_call();
    const double seconds = seconds_since(start);
    measured_.seconds.push_back(seconds);
    probes_.after_call(seconds);
    spent_ += seconds_since(start);
  }

  double share_done(Index repeat, double min_time) const {
    const double calls =
        static_cast<double>(measured_.seconds.size()) / static_cast<double>(repeat);
    return min_time > 0 ? std::min(calls, spent_ / min_time) : calls;
  }

  BenchMeasured finish(const Watch& watch) && {
    if (!measured_.seconds.empty()) {
      const double best = *std::min_element(measured_.seconds.begin(), measured_.seconds.end());
      probes_.complete(bench_flops(of_).value_or(0) / best, watch);
    }
    measured_.peak = probes_.best();
    return std::move(measured_);
  }

 private:
  void make_call() {
    // Ends with the call.
    BenchOutcome fresh;
    call_(of_.threads, of_.buffers == BenchBuffers::warm ? kept_ : fresh);
  }

  const BenchCall& call_;
  const BenchCase& of_;
  BenchOutcome& kept_;
  BenchMeasured measured_;
  PeakProbes probes_;
  double spent_ = 0;
};

}  // namespace

void PeakProbes::probe() {
  best_ = std::max(best_, probe_());
  ++count_;
}

void PeakProbes::after_call(double seconds) {
  constexpr double kShare = 0.05;
  const Clock::time_point start = Clock::now();
  do {
    probe();
  } while (seconds_since(start) < kShare * seconds);
}

void PeakProbes::complete(double reached, const Watch& watch) {
  while ((count_ < kLeast || (best_ < reached && count_ < kMost)) && !watch.cancelled()) probe();
}

std::vector<BenchMeasured> measure_in_turns(std::span<const BenchCase> cases, std::uint64_t seed,
                                            Index repeat, double min_time, const Watch& watch,
                                            const std::function<void(double)>& progress) {
  const BenchCall call(cases.front(), seed);
  BenchOutcome kept;
  std::vector<Contender> contenders;
  contenders.reserve(cases.size());
  for (const BenchCase& of : cases) contenders.emplace_back(call, of, kept);
  double share = 0;
  while (share < 1 && !watch.cancelled()) {
    share = 1;
    for (Contender& contender : contenders) {
      if (watch.cancelled()) break;
      contender.take_turn();
      share = std::min(share, contender.share_done(repeat, min_time));
    }
    progress(share);
  }
  std::vector<BenchMeasured> measured;
  measured.reserve(contenders.size());
  for (Contender& contender : contenders) measured.push_back(std::move(contender).finish(watch));
  return measured;
}

}  // namespace attnlab
