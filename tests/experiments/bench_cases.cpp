// Which calls bench makes, and that they are those of the library.

#include "attnlab/core/error.h"
#include "attnlab/core/random.h"
#include "attnlab/core/thread_pool.h"
#include "attnlab/core/threads.h"
#include "catch.h"
#include "experiments/quick_bench.h"

namespace attnlab {
namespace {

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
  BenchOptions options = test::quick_bench();
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
  CHECK(refusal(options).empty());
  options.kernel = {Kernel::full};
  CHECK(refusal(options).rfind("n: got 16777216, needs 1.13 PB of memory, ", 0) == 0);
  options.kernel = {};
  options.heads = 1 << 16;
  CHECK(refusal(options).rfind("n: got 16777216, needs 17.6 TB of memory, ", 0) == 0);
  options.weights = true;
  CHECK(refusal(options).rfind("n: got 16777216, needs 18.4 EB of memory, ", 0) == 0);
}

TEST_CASE("lists without a value, or with one twice, are refused") {
  BenchOptions options = test::quick_bench();
  options.n = {16, 16};
  CHECK(refusal(options) == "n: got 16, is there twice");
  options = test::quick_bench();
  options.d_k = {};
  CHECK(refusal(options) == "d_k: need at least one");
  options = test::quick_bench();
  options.kernel = {Kernel::full, Kernel::full};
  CHECK(refusal(options) == "kernel: need one or more, none of them twice");
  options = test::quick_bench();
  options.buffers = {};
  CHECK(refusal(options) == "buffers: need one or more, none of them twice");
  options = test::quick_bench();
  options.threads = {2, 2};
  CHECK(refusal(options) == "threads: got 2, is there twice");
  options = test::quick_bench();
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

TEST_CASE("the library's call is on the threads that the row names") {
  for (const auto operation : {BenchOperation::attention, BenchOperation::backward,
                               BenchOperation::multihead, BenchOperation::normals}) {
    // Enough work for several threads, and more of them than were ever asked for. Probes of the
    // peak have threads of their own.
    const Index before = ThreadPool::shared().size();
    BenchOptions options = test::quick_bench();
    options.operation = {operation};
    options.n = {64};
    options.heads = 128;
    options.repeat = 1;
    options.threads = {before + 2, before + 4};
    CHECK(bench(options, {}).rows.size() == 2);
    CHECK(ThreadPool::shared().size() == before + 3);  // and the caller
    options.threads = {1};
    bench(options, {});
    CHECK(ThreadPool::shared().size() == before + 3);
  }
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

}  // namespace
}  // namespace attnlab
