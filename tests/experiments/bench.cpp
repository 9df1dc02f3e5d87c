// What bench makes of what it measures.

#include "attnlab/experiments/bench.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "attnlab/experiments/bench_turns.h"
#include "catch.h"
#include "experiments/quick_bench.h"

namespace attnlab {
namespace {

TEST_CASE("the figures of a row agree with each other") {
  BenchOptions options = test::quick_bench();
  options.operation = {BenchOperation::attention, BenchOperation::backward,
                       BenchOperation::multihead};
  options.causal = true;
  options.kernel = {Kernel::full};
  options.repeat = 9;
  Index told = 0;
  double last = 0;
  Watch watch;
  watch.row = [&](const std::vector<ResultRef>& cells) {
    CHECK(cells.size() == columns_of<BenchRow>().size());
    ++told;
  };
  watch.progress = [&](double share) {
    CHECK(share >= last);
    last = share;
  };
  const BenchResult result = bench(options, watch);
  REQUIRE(result.rows.size() == 3);
  CHECK(told == 3);
  CHECK(last == Approx(1));
  CHECK_FALSE(result.status.interrupted);
  const std::vector<BenchCase> cases = bench_cases(options);
  for (std::size_t i = 0; i < 3; ++i) {
    const BenchRow& row = result.rows[i];
    CHECK(row.operation == kChoiceNames<BenchOperation>[i]);
    CHECK(row.kernel == "full");
    CHECK(row.n == 16);
    CHECK(row.d_k == 4);
    CHECK(row.heads == 2);
    CHECK(row.causal);
    CHECK(row.weights == (row.operation != "backward"));
    CHECK(row.threads == 1);
    CHECK(row.calls == 9);
    CHECK(row.best_ms > 0);
    CHECK(row.best_ms <= row.p25_ms);
    CHECK(row.p25_ms <= row.median_ms);
    CHECK(row.median_ms <= row.p75_ms);
    CHECK(row.gflops.value() == Approx(*bench_flops(cases[i]) / 1e9 / (row.best_ms / 1e3)));
    CHECK(row.peak_gflops > 0);
    CHECK(row.peak_share.value() == Approx(*row.gflops / row.peak_gflops));
    CHECK(row.buffers == "fresh");
    CHECK_FALSE(row.values_per_second);
  }
}

TEST_CASE("a row of normals has their rate, and nothing that it has not") {
  BenchOptions options = test::quick_bench();
  options.operation = {BenchOperation::normals};
  options.buffers = {BenchBuffers::fresh, BenchBuffers::warm};
  const auto rows = bench(options, {}).rows;
  REQUIRE(rows.size() == 2);
  for (const BenchRow& row : rows) {
    CHECK(row.values_per_second.value() == Approx(2 * 16 * 4 / (row.best_ms / 1e3)));
    CHECK_FALSE(row.kernel);
    CHECK_FALSE(row.gflops);
    CHECK_FALSE(row.peak_share);
  }
  CHECK(rows[0].buffers == "fresh");
  CHECK(rows[1].buffers == "warm");
}

TEST_CASE("the speedup is over the row of one thread, wherever it stands") {
  BenchOptions options = test::quick_bench();
  options.threads = {2, 1, 3};
  const auto rows = bench(options, {}).rows;
  REQUIRE(rows.size() == 3);
  for (const BenchRow& row : rows) {
    CHECK(row.speedup.value() == Approx(rows[1].best_ms / row.best_ms));
    // They take turns.
    CHECK(row.calls == rows[0].calls);
  }
  options.threads = {2, 3};
  for (const BenchRow& row : bench(options, {}).rows) CHECK_FALSE(row.speedup);
}

TEST_CASE("the peak is the best of many probes, of more where a call was faster") {
  int probed = 0;
  // A busy machine at first.
  const auto probe = [&] { return ++probed < 100 ? 50.0 : 90.0; };
  PeakProbes few(probe);
  few.after_call(0);
  CHECK(few.count() == 1);
  few.complete(49, {});
  CHECK(few.count() == PeakProbes::kLeast);
  CHECK(few.best() == 50);
  probed = 0;
  PeakProbes more(probe);
  more.after_call(0);
  more.complete(80, {});
  CHECK(more.count() == 100);
  CHECK(more.best() == 90);
  // What no probe reaches ends all the same.
  PeakProbes most(probe);
  most.complete(91, {});
  CHECK(most.count() == PeakProbes::kMost);
  const std::atomic<bool> cancel{true};
  Watch watch;
  watch.cancel = &cancel;
  PeakProbes none(probe);
  none.complete(91, watch);
  CHECK(none.count() == 0);
}

TEST_CASE("a twentieth of a call's time goes to probes of the peak") {
  PeakProbes probes([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 1.0;
  });
  // At most a millisecond over the five that 100 ms have; fewer where a probe sleeps longer.
  probes.after_call(0.1);
  CHECK(probes.count() >= 1);
  CHECK(probes.count() <= 6);
}

TEST_CASE("a row goes on until both its calls and its time are done") {
  BenchOptions options = test::quick_bench();
  options.min_time = 0.05;
  // A lower bound, which holds on a slow machine too: there the calls alone may take so long.
  const auto start = std::chrono::steady_clock::now();
  CHECK(bench(options, {}).rows.at(0).calls >= options.repeat);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(50));
  options.repeat = 40;
  options.min_time = 1e-9;
  CHECK(bench(options, {}).rows.at(0).calls == 40);
}

TEST_CASE("turns go on until the last of the calls has had its time") {
  constexpr double kSeconds = 0.05;
  BenchCase one{.n = 16, .d_k = 4, .heads = 2};
  BenchCase many = one;
  many.threads = 4;  // whose probes of the peak take longer, and it has its time before
  for (const auto& cases : {std::vector{one, many}, std::vector{many, one}}) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    Clock::time_point end = start;
    double last = 0;
    const auto measured = measure_in_turns(cases, 1, 1, kSeconds, {}, [&](double share) {
      last = share;
      end = Clock::now();
    });
    CHECK(last >= 1);
    // Each has had that much: a lower bound, which holds on a slow machine too.
    CHECK(std::chrono::duration<double>(end - start).count() >= 2 * kSeconds);
    REQUIRE(measured.size() == 2);
    CHECK(measured[0].seconds.size() == measured[1].seconds.size());
  }
}

TEST_CASE("the memory of a call shows the weights, which tiles do without") {
  BenchOptions options = test::quick_bench();
  options.n = {1024};
  options.repeat = 1;
  options.kernel = {Kernel::tiled, Kernel::full};
  const auto rows = bench(options, {}).rows;
  REQUIRE(rows.size() == 2);
  if (!rows[0].peak_memory_mib) return;  // the system does not tell
  // [2, 1024, 1024] float32 are 8 MiB.
  CHECK(*rows[0].peak_memory_mib < 4);
  CHECK(rows[1].peak_memory_mib.value() >= 7.5);
  options.weights = true;
  CHECK(bench(options, {}).rows.at(0).peak_memory_mib.value() >= 7.5);
  // Nor does the memory that a call on other threads has left hide that of a call.
  options.kernel = {Kernel::tiled};
  options.buffers = {BenchBuffers::warm};
  options.threads = {1, 2};
  const auto warm = bench(options, {}).rows;
  REQUIRE(warm.size() == 2);
  for (const BenchRow& row : warm) CHECK(row.peak_memory_mib.value() >= 7.5);
}

TEST_CASE("a cancelled run keeps the rows it has") {
  std::atomic<bool> cancel{false};
  Watch watch;
  watch.cancel = &cancel;
  watch.row = [&](const auto&) { cancel = true; };
  BenchOptions options = test::quick_bench();
  options.n = {4, 8, 16};
  const BenchResult result = bench(options, watch);
  CHECK(result.rows.size() == 1);
  CHECK(result.status.interrupted);
}

TEST_CASE("a row that takes long can be cancelled, and is not kept") {
  std::atomic<bool> cancel{false};
  int calls = 0;
  Watch watch;
  watch.cancel = &cancel;
  watch.progress = [&](double) {
    ++calls;
    cancel = true;
  };
  BenchOptions options = test::quick_bench();
  options.repeat = 50;
  const BenchResult result = bench(options, watch);
  CHECK(calls == 1);
  CHECK(result.rows.empty());
  CHECK(result.finding.empty());
  CHECK(result.status.interrupted);
}

BenchRow finished(std::string kernel, Index n, double median_ms, std::optional<double> mib) {
  BenchRow row;
  row.operation = "attention";
  row.n = n;
  row.d_k = 64;
  row.heads = 8;
  row.threads = 1;
  row.kernel = std::move(kernel);
  row.median_ms = median_ms;
  row.peak_share = 0.876;
  row.peak_memory_mib = mib;
  return row;
}

TEST_CASE("what was found is said of the largest size") {
  CHECK(bench_finding({}).empty());
  const BenchRow tiled = finished("tiled", 2048, 20, 4.125),
                 full = finished("full", 2048, 1234.5, 132.9);
  CHECK(bench_finding({finished("tiled", 64, 1, 1), tiled, finished("full", 64, 2, 1)}) ==
        "At n 2048 and d_k 64 attention of 8 heads takes 20 ms by the tiled kernel, at best 88% of "
        "the multiply-adds that 1 thread can do.");
  const std::string both =
      "At n 2048 and d_k 64 attention of 8 heads takes 20 ms by the tiled kernel, at best 88% of "
      "the multiply-adds that 1 thread can do: 61.7 times as fast as full with 1234 ms";
  CHECK(bench_finding({tiled, full}) == both + ", and in 4.12 MiB of memory where full takes 133.");
  CHECK(bench_finding({full, tiled}) == bench_finding({tiled, full}));
  BenchRow keeping = full;
  keeping.weights = true;
  CHECK(bench_finding({tiled, keeping}) ==
        both + ", and in 4.12 MiB of memory where full, which keeps the weights, takes 133.");
  CHECK(bench_finding({tiled, finished("full", 2048, 1234.5, std::nullopt)}) == both + ".");
}

TEST_CASE("what threads do is said, and kernels are held against each other on as many") {
  BenchRow one = finished("tiled", 2048, 40, 4), two = finished("tiled", 2048, 21, 4);
  one.speedup = 1;
  two.threads = 2;
  two.speedup = 1.904;
  BenchRow full = finished("full", 2048, 400, 4), full_two = finished("full", 2048, 210, 4);
  full_two.threads = 2;
  const std::string text =
      "At n 2048 and d_k 64 attention of 8 heads takes 21 ms by the tiled kernel, at best 88% of "
      "the multiply-adds that 2 threads can do";
  CHECK(bench_finding({one, two}) == text + ". 2 threads are 1.9 times as fast as one.");
  CHECK(bench_finding({one, two, full, full_two}) ==
        text +
            ": 10 times as fast as full with 210 ms, and in 4 MiB of memory where full takes "
            "4. 2 threads are 1.9 times as fast as one.");
  BenchRow warm = finished("tiled", 2048, 20, 4);
  warm.buffers = "warm";
  CHECK(bench_finding({warm, finished("full", 2048, 400, 4)}) ==
        "At n 2048 and d_k 64 attention of 8 heads takes 20 ms into warm buffers by the tiled "
        "kernel, at best 88% of the multiply-adds that 1 thread can do.");
}

TEST_CASE("of normals it is said how many a second") {
  BenchRow row = finished("", 2048, 0.8, 4);
  row.operation = "normals";
  row.kernel = std::nullopt;
  row.peak_share = std::nullopt;
  row.values_per_second = 1.3107e9;
  CHECK(bench_finding({row}) ==
        "1048576 normals take 0.8 ms on 1 thread: 1.31e+09 a second at best.");
}

}  // namespace
}  // namespace attnlab
