#include "attnlab/experiments/bench.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <variant>

#include "attnlab/core/error.h"
#include "attnlab/core/random.h"
#include "attnlab/core/threads.h"
#include "attnlab/experiments/bench_turns.h"
#include "catch.h"

namespace attnlab {
namespace {

// Rows as fast as they can be had.
BenchOptions quick() {
  BenchOptions options;
  options.n = {16};
  options.d_k = {4};
  options.heads = 2;
  options.repeat = 3;
  options.min_time = 0;
  options.threads = {1};
  return options;
}

std::string refusal(const BenchOptions& options) {
  try {
    bench_cases(options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("operations are counted by hand") {
  // Q K^T and weights V of 2 heads: 16 x 16 x 4 multiply-adds each.
  BenchCase of{.n = 16, .d_k = 4, .heads = 2};
  CHECK(bench_flops(of) == 2 * 2 * 2 * 16 * 16 * 4);
  of.weights = true;
  CHECK(bench_flops(of) == 8192);
  // 136 of 256 pairs are seen.
  of.causal = true;
  CHECK(bench_flops(of) == 8192 * 136 / 256);
  of.operation = BenchOperation::backward;
  CHECK(bench_flops(of) == 2.5 * 4352);
  // Four projections of [16, 8] by [8, 8].
  of.operation = BenchOperation::multihead;
  CHECK(bench_flops(of) == 4352 + 4 * 2 * 16 * 8 * 8);
  of.causal = false;
  CHECK(bench_flops(of) == 8192 + 8192);
  // One position sees all there is.
  CHECK(bench_flops({.n = 1, .d_k = 3, .heads = 1, .causal = true}) == 12);
  of.operation = BenchOperation::normals;
  CHECK_FALSE(bench_flops(of));
}

TEST_CASE("memory is that of the tensors, however large") {
  BenchCase of{.n = 16, .d_k = 4, .heads = 2};
  CHECK(bench_bytes(of) == 4 * 4 * 128);
  of.weights = true;
  CHECK(bench_bytes(of) == 4 * (4 * 128 + 2 * 16 * 16));
  of.operation = BenchOperation::multihead;
  CHECK(bench_bytes(of) == 4 * (8 * 128 + 4 * 8 * 8 + 2 * 16 * 16));
  of.weights = false;
  of.operation = BenchOperation::backward;
  CHECK(bench_bytes(of) == 4 * 8 * 128);
  of.operation = BenchOperation::normals;
  CHECK(bench_bytes(of) == 4 * 128);
  CHECK(bench_bytes({.n = 1 << 24, .d_k = 1 << 16, .heads = 1 << 16, .weights = true}) ==
        18446744073709551615U);
}

TEST_CASE("rows are the operations, widths, sizes, kernels and so on asked for, in this order") {
  BenchOptions options;
  options.operation = {BenchOperation::backward, BenchOperation::attention};
  options.d_k = {8, 4};
  options.n = {32, 16};
  options.kernel = {Kernel::full, Kernel::tiled};
  options.buffers = {BenchBuffers::warm, BenchBuffers::fresh};
  options.threads = {1, 3, 2};
  options.causal = true;
  options.heads = 3;
  const std::vector<BenchCase> cases = bench_cases(options);
  REQUIRE(cases.size() == 96);
  for (std::size_t i = 0; i < 96; ++i) {
    CHECK(cases[i].operation == options.operation[i / 48]);
    CHECK(cases[i].d_k == options.d_k[i / 24 % 2]);
    CHECK(cases[i].n == options.n[i / 12 % 2]);
    CHECK(cases[i].kernel == options.kernel[i / 6 % 2]);
    CHECK(cases[i].buffers == options.buffers[i / 3 % 2]);
    CHECK(cases[i].threads == options.threads[i % 3]);
    CHECK(cases[i].causal);
    CHECK(cases[i].heads == 3);
  }
}

TEST_CASE("no threads are all cores, and a number of threads has one row however it is said") {
  BenchOptions options = quick();
  options.threads = BenchOptions().threads;
  REQUIRE(bench_cases(options).size() == 1);
  CHECK(bench_cases(options)[0].threads == thread_count(0));
  options.threads = {0, thread_count(0), 77};
  REQUIRE(bench_cases(options).size() == 2);
  CHECK(bench_cases(options)[1].threads == 77);
}

TEST_CASE("normals have one row a size, and neither mask, weights nor kernel") {
  BenchOptions options;
  options.operation = {BenchOperation::normals};
  const std::vector<BenchCase> cases = bench_cases(options);
  CHECK(cases.size() == 4);
  for (const BenchCase& one : cases) CHECK_FALSE(one.weights);
  options.causal = true;
  CHECK(refusal(options) == "causal: got true, cannot go with operation normals, which has none");
  options.causal = false;
  options.weights = true;
  CHECK(refusal(options) == "weights: got true, cannot go with operation normals, which has none");
  options.weights = false;
  options.kernel = {Kernel::full};
  CHECK(refusal(options) == "kernel: got full, cannot go with operation normals, which has none");
}

TEST_CASE("one row a size, but both kernels where nothing is asked for") {
  BenchOptions options;
  const std::vector<BenchCase> usual = bench_cases(options);
  REQUIRE(usual.size() >= 4);
  REQUIRE(usual.size() % 2 == 0);
  for (std::size_t i = 0; i < usual.size(); i += 2) {
    CHECK(usual[i].kernel == Kernel::tiled);
    CHECK(usual[i + 1].kernel == Kernel::full);
    CHECK(usual[i].n == usual[i + 1].n);
    CHECK_FALSE(usual[i].causal);
  }
  options.n = {64, 128};
  options.d_k = {8, 16};
  const std::vector<BenchCase> sized = bench_cases(options);
  REQUIRE(sized.size() == 4);
  for (const BenchCase& one : sized) CHECK(one.kernel == Kernel::automatic);
  options.n = {};
  options.kernel = {Kernel::full};
  for (const BenchCase& one : bench_cases(options)) CHECK(one.kernel == Kernel::full);
}

TEST_CASE("weights are those of the full kernel unless it is said") {
  BenchOptions options;
  options.n = {16};
  options.kernel = {Kernel::automatic, Kernel::tiled, Kernel::full};
  options.operation = {BenchOperation::attention, BenchOperation::multihead};
  std::vector<bool> weights;
  const auto weights_now = [&] {
    weights.clear();
    for (const BenchCase& one : bench_cases(options)) weights.push_back(one.weights);
    return weights;
  };
  CHECK(weights_now() == std::vector{false, false, true, false, false, true});
  options.weights = false;
  CHECK(weights_now() == std::vector(6, false));
  options.weights = true;
  CHECK(weights_now() == std::vector(6, true));
  options.operation = {BenchOperation::attention, BenchOperation::backward};
  CHECK(refusal(options) == "weights: got true, cannot go with operation backward, which has none");
  options.weights = std::nullopt;
  CHECK(weights_now() == std::vector{false, false, true, false, false, false});
}

TEST_CASE("sizes that do not fit are refused before anything is allocated") {
  BenchOptions options;
  options.n = {16, 1 << 24};
  options.d_k = {1};
  options.heads = 1;
  CHECK(refusal(options) == "");
  options.kernel = {Kernel::full};
  CHECK(refusal(options).rfind("n: got 16777216, needs 1.13 PB of memory, ", 0) == 0);
  options.kernel = {};
  options.heads = 1 << 16;
  CHECK(refusal(options).rfind("n: got 16777216, needs 17.6 TB of memory, ", 0) == 0);
  options.weights = true;
  CHECK(refusal(options).rfind("n: got 16777216, needs 18.4 EB of memory, ", 0) == 0);
}

TEST_CASE("lists without a value, or with one twice, are refused") {
  BenchOptions options = quick();
  options.n = {16, 16};
  CHECK(refusal(options) == "n: got 16, is there twice");
  options = quick();
  options.d_k = {};
  CHECK(refusal(options) == "d_k: need at least one");
  options = quick();
  options.kernel = {Kernel::full, Kernel::full};
  CHECK(refusal(options) == "kernel: need one or more, none of them twice");
  options = quick();
  options.buffers = {};
  CHECK(refusal(options) == "buffers: need one or more, none of them twice");
  options = quick();
  options.threads = {2, 2};
  CHECK(refusal(options) == "threads: got 2, is there twice");
  options = quick();
  options.operation = {};
  CHECK(refusal(options) == "operation: need one or more, none of them twice");
}

Tensor<float> drawn(const Shape& shape, Stream stream) {
  Tensor<float> tensor = Tensor<float>::uninitialized(shape);
  fill_normal(tensor.values(), 7, stream);
  return tensor;
}

void check_same(const Tensor<float>& got, const Tensor<float>& expected) {
  REQUIRE(got.shape() == expected.shape());
  CHECK(std::equal(got.values().begin(), got.values().end(), expected.values().begin()));
}

template <class Result>
Result result_of_call(const BenchCase& of) {
  BenchOutcome outcome;
  BenchCall(of, 7)(2, outcome);
  return std::get<Result>(std::move(outcome));
}

TEST_CASE("what is measured is the call of the library that the row names") {
  const Shape shape{1, 2, 16, 4};
  const auto q = drawn(shape, Stream::input_q), k = drawn(shape, Stream::input_k);
  const auto v = drawn(shape, Stream::input_v), x = drawn({1, 16, 8}, Stream::input_x);
  const auto grad_output = drawn(shape, Stream::sample_grad_output);
  for (const bool causal : {false, true}) {
    Mask mask(1, 2, 16, 16);
    if (causal) mask.set_causal();
    BenchCase of{.n = 16, .d_k = 4, .heads = 2, .causal = causal, .kernel = Kernel::full};
    const AttentionSettings settings{.scale = 0.5, .kernel = Kernel::full, .threads = 1};
    check_same(result_of_call<AttentionResult<float>>(of).output,
               scaled_dot_product(q, k, v, mask, settings).output);
    of.operation = BenchOperation::backward;
    const auto gradients = result_of_call<AttentionGradients<float>>(of);
    const auto expected = scaled_dot_product_backward(q, k, v, grad_output, mask, settings);
    check_same(gradients.grad_q.value(), *expected.grad_q);
    check_same(gradients.grad_k.value(), *expected.grad_k);
    check_same(gradients.grad_v.value(), *expected.grad_v);
    of.operation = BenchOperation::multihead;
    const MultiHeadShape layer{8, 8, 8, 8, 2, 2, 4, 4};
    const auto params = draw_multi_head<float>(layer, Init::xavier_uniform, 1, 7);
    check_same(result_of_call<MultiHeadResult<float>>(of).output,
               multi_head(x, x, x, params, mask, settings).output);
  }
  const auto values = result_of_call<Tensor<float>>(
      {.operation = BenchOperation::normals, .n = 16, .d_k = 4, .heads = 2});
  Tensor<float> expected = Tensor<float>::uninitialized({2, 16, 4});
  fill_normal(expected.values().first(64), 7, Stream::input_x, 0);
  fill_normal(expected.values().last(64), 7, Stream::input_x, 1);
  check_same(values, expected);
}

TEST_CASE("a call takes over the memory of the one before, of its operation or another") {
  for (const auto operation : {BenchOperation::attention, BenchOperation::multihead}) {
    BenchOutcome outcome = Tensor<float>({3});
    const BenchCall call({.operation = operation, .n = 16, .d_k = 4, .heads = 2, .weights = true},
                         7);
    const auto weights = [&] {
      call(1, outcome);
      const auto* attention = std::get_if<AttentionResult<float>>(&outcome);
      const auto* layer = std::get_if<MultiHeadResult<float>>(&outcome);
      return (attention != nullptr ? attention->weights : layer->attention.weights)->data();
    };
    const float* first = weights();
    CHECK(weights() == first);
  }
}

TEST_CASE("the figures of a row agree with each other") {
  BenchOptions options = quick();
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
  BenchOptions options = quick();
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
  BenchOptions options = quick();
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
  BenchOptions options = quick();
  options.min_time = 0.05;
  // A lower bound, which holds on a slow machine too: there the calls alone may take so long.
  const auto start = std::chrono::steady_clock::now();
  CHECK(bench(options, {}).rows.at(0).calls >= options.repeat);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(50));
  options.repeat = 40;
  options.min_time = 1e-9;
  CHECK(bench(options, {}).rows.at(0).calls == 40);
}

TEST_CASE("the memory of a call shows the weights, which tiles do without") {
  BenchOptions options = quick();
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
  BenchOptions options = quick();
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
  BenchOptions options = quick();
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
