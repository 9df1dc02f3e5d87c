#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/watch.h"
#include "attnlab/experiments/bench_case.h"

namespace attnlab {

// Measures how long attention takes, and how much memory. Threads are an option of the result here,
// as they are nowhere else; calls that differ in them alone take turns, so that their ratio tells
// of the threads and not of the hour.
struct BenchOptions {
  std::vector<Index> n;
  std::vector<Index> d_k = {64};
  std::vector<BenchOperation> operation = {BenchOperation::attention};
  std::vector<Kernel> kernel;
  std::vector<BenchBuffers> buffers = {BenchBuffers::fresh};
  std::vector<Index> threads = {0};
  Index heads = 8;
  bool causal = false;
  std::optional<bool> weights;
  Index repeat = 5;
  double min_time = 0.3;
  std::uint64_t seed = 0;

  static constexpr auto fields() {
    using O = BenchOptions;
    return std::tuple(
        field("n", &O::n, "numbers of queries, and of keys; 256,512,1024,2048 unless given",
              {.range = between<Index>(1, 1 << 24)}),
        field("d_k", &O::d_k, "widths of a head", {.range = between<Index>(1, 1 << 16)}),
        field("operation", &O::operation,
              "attention on given Q, K, V; its backward pass, all three gradients; multihead, the "
              "layer with its projections, of width heads d_k; or normals, which draws [heads, n, "
              "d_k] of them"),
        field("kernel", &O::kernel,
              "as of attend, a row each: auto unless given, and without n too tiled beside full, "
              "so that both are seen"),
        field("buffers", &O::buffers,
              "where results go, a row each: fresh memory of each call, or warm, what the call "
              "before has written (of multihead the matrices of its attention alone)"),
        field("threads", &O::threads,
              "numbers of threads, 0 for all cores, a row each; they take turns, call by call",
              {.range = between<Index>(0, 1024)}),
        field("heads", &O::heads, "heads", {.range = between<Index>(1, 1 << 16)}),
        field("causal", &O::causal, "query i sees keys j <= i"),
        field("weights", &O::weights,
              "ask for the [heads, n, n] weights too; unless given full does, as formulas that are "
              "followed step by step keep them, and the others do not"),
        field("repeat", &O::repeat,
              "calls to measure at least, after a first whose memory is measured",
              {.range = between<Index>(1, 1000000)}),
        field("min_time", &O::min_time, "measure each row for so long at least",
              {.unit = "SECONDS", .range = between(0.0, 3600.0)}),
        field("seed", &O::seed, "seed of the tensors, which are standard normal float32"));
  }
};

// One call, measured again and again with a probe of the FMA peak after each.
struct BenchRow {
  std::string operation;
  Index n = 0, d_k = 0, heads = 0;
  bool causal = false, weights = false;
  Index threads = 0;
  std::optional<std::string> kernel;
  std::string buffers;
  Index calls = 0;
  double median_ms = 0, p25_ms = 0, p75_ms = 0, best_ms = 0;
  std::optional<double> speedup, gflops;
  double peak_gflops = 0;
  std::optional<double> peak_share, values_per_second, peak_memory_mib;

  static constexpr auto fields() {
    using R = BenchRow;
    return std::tuple(
        field("operation", &R::operation, "what was called"),
        field("n", &R::n, "queries, and as many keys"), field("d_k", &R::d_k, "width of a head"),
        field("heads", &R::heads, "heads"), field("causal", &R::causal, "whether under that mask"),
        field("weights", &R::weights, "whether the call gave the weights too"),
        field("threads", &R::threads, "threads that were used"),
        field("kernel", &R::kernel, "auto is tiled; normals has none"),
        field("buffers", &R::buffers, "whether the result went into fresh memory or warm"),
        field("calls", &R::calls, "calls measured"),
        field("median_ms", &R::median_ms,
              "time of a call of the library; with fresh buffers allocating and releasing its "
              "result included: the memory of small ones is warm all the same, that of large ones "
              "comes anew from the system"),
        field("p25_ms", &R::p25_ms, "a quarter of the calls took less"),
        field("p75_ms", &R::p75_ms, "a quarter of the calls took more"),
        field("best_ms", &R::best_ms, "the shortest call"),
        field("speedup", &R::speedup,
              "best_ms of one thread over this one's; none where one thread was not asked for"),
        field("gflops", &R::gflops,
              "10^9 operations a second of the best call: 4 heads n^2 d_k, where causal times "
              "(n + 1) / 2n; backward 2.5 of that; multihead 8 n (heads d_k)^2 more; normals none"),
        field("peak_gflops", &R::peak_gflops,
              "what multiply-adds in registers alone reach on these threads: the best of many "
              "probes between the calls and after them"),
        field("peak_share", &R::peak_share, "gflops / peak_gflops"),
        field("values_per_second", &R::values_per_second,
              "of normals: heads n d_k values in the time of the best call"),
        field("peak_memory_mib", &R::peak_memory_mib,
              "how far the first call took the memory of the process above what it had, the "
              "inputs included; none where the system does not tell"));
  }
};

struct BenchStatus {
  bool interrupted = false;

  static constexpr auto fields() {
    return std::tuple(field("interrupted", &BenchStatus::interrupted,
                            "whether the run was stopped before its last row"));
  }
};

struct BenchResult {
  std::vector<BenchRow> rows;
  std::string finding;
  BenchStatus status;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = BenchResult;
    return std::tuple(
        field("rows", &R::rows,
              "one an operation, d_k, n, kernel, buffers and number of threads, in this order"),
        field("finding", &R::finding, "what was found, in a sentence or two"),
        group("", &R::status));
  }
};

// The calls that the options ask for, in the order of the rows. Throws InputError where there is
// not the memory for one, and when an operation is asked for what it has not: weights of the
// backward pass, or weights, a mask or a kernel of normals.
std::vector<BenchCase> bench_cases(const BenchOptions& options);

// The largest of the rows in a sentence: its fastest kernel against its slowest, and what the
// threads do.
std::string bench_finding(const std::vector<BenchRow>& rows);

// Throws InputError.
BenchResult bench(const BenchOptions& options, const Watch& watch);

}  // namespace attnlab
