#include "attnlab/core/fma_rate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/core/fma_rate.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Independent sums: two multipliers of 4 or 5 cycles each want 10 in flight, and 16 registers hold
// 12 beside the two operands.
inline constexpr int kSums = 12;

// `steps` multiply-adds of each sum, s -> s factor + addend; what they came to, since a result that
// nobody asks for is never computed.
float multiply_add(std::int64_t steps, float factor, float addend) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, factor), b = hn::Set(d, addend);
  hn::Vec<decltype(d)> sums[kSums];
  HWY_UNROLL(12)
  for (int i = 0; i < kSums; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  HWY_UNROLL(1)
  for (std::int64_t step = 0; step < steps; ++step) {
    HWY_UNROLL(12)
    for (auto& sum : sums) sum = hn::MulAdd(sum, a, b);
  }
  auto total = hn::Zero(d);
  HWY_UNROLL(12)
  for (const auto& sum : sums) total = hn::Add(total, sum);
  return hn::GetLane(total);
}

// Operations in one step.
std::int64_t operations() {
  return 2 * kSums * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "attnlab/core/threads.h"

namespace attnlab {
HWY_EXPORT(multiply_add);
HWY_EXPORT(operations);

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSteps = std::int64_t{1} << 18;

struct Probe {
  Clock::time_point start, end;
  float sum = 0;

  void run() {
    start = Clock::now();
    // Sums that settle at 2: neither subnormal nor infinite, which some processors are slow at.
    sum = HWY_DYNAMIC_DISPATCH(multiply_add)(kSteps, 0.5F, 1.0F);
    end = Clock::now();
  }
};

}  // namespace

double fma_rate(Index threads) {
  std::vector<Probe> probes(static_cast<std::size_t>(thread_count(threads)));
  // Threads take longer to start than a probe to run: they wait until all are there.
  std::atomic<std::size_t> waiting{0};
  std::atomic<bool> go{false};
  std::size_t started = 1;
  {
    std::vector<std::jthread> pool;
    pool.reserve(probes.size());
    try {
      for (; started < probes.size(); ++started) {
        pool.emplace_back([&probe = probes[started], &waiting, &go] {
          ++waiting;
          while (!go) std::this_thread::yield();
          probe.run();
        });
      }
    } catch (const std::exception&) {
      // The system grants no more threads: what is there is measured.
    }
    while (waiting + 1 < started) std::this_thread::yield();
    go = true;
    probes[0].run();
  }
  probes.resize(started);
  const auto by_start = [](const Probe& a, const Probe& b) { return a.start < b.start; };
  const auto by_end = [](const Probe& a, const Probe& b) { return a.end < b.end; };
  const std::chrono::duration<double> seconds =
      std::max_element(probes.begin(), probes.end(), by_end)->end -
      std::min_element(probes.begin(), probes.end(), by_start)->start;
  const auto steps = static_cast<double>(started) * static_cast<double>(kSteps);
  return steps * static_cast<double>(HWY_DYNAMIC_DISPATCH(operations)()) / seconds.count();
}

}  // namespace attnlab
#endif
