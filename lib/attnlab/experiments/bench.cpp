#include "attnlab/experiments/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>

#include "attnlab/core/error.h"
#include "attnlab/core/fma_rate.h"
#include "attnlab/core/memory.h"
#include "attnlab/core/peak_memory.h"
#include "attnlab/core/threads.h"
#include "attnlab/experiments/scaling_list.h"
#include "attnlab/stats/quantile.h"

namespace attnlab {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

std::string name_of(BenchOperation operation) {
  return std::string(kChoiceNames<BenchOperation>[static_cast<std::size_t>(operation)]);
}
std::string name_of(Kernel kernel) {
  return std::string(kChoiceNames<Kernel>[static_cast<std::size_t>(kernel)]);
}

// Throws InputError for a list that is empty or names something twice.
template <class Choice>
void require_choices(const std::vector<Choice>& list, const char* field) {
  std::vector<Index> values;
  values.reserve(list.size());
  for (const Choice choice : list) values.push_back(static_cast<Index>(choice));
  if (std::set(values.begin(), values.end()).size() == values.size() && !values.empty()) return;
  throw InputError("", field, "", "need one or more, none of them twice");
}

// What was measured of one call.
struct Measured {
  std::vector<double> seconds;
  double peak = 0;  // operations a second, of multiply-adds in registers
  std::optional<std::uint64_t> memory;
};

// A twentieth of the time goes to the peak: a probe alone may meet a neighbour's burst of work.
constexpr double kProbeShare = 0.05;

// Calls and probes of the peak in turn, so that both see the processor at the same clock. Stops
// early when the run is cancelled. `progress` is told the share that is done.
Measured measure(const BenchCase& of, const BenchOptions& options, const Watch& watch,
                 const std::function<void(double)>& progress) {
  const BenchCall call(of, options.seed);
  Measured measured;
  measured.memory = peak_memory(call);
  const auto wanted = static_cast<std::size_t>(options.repeat);
  const Clock::time_point start = Clock::now();
  double share = 0;
  while (share < 1 && !watch.cancelled()) {
    const Clock::time_point before = Clock::now();
    call();
    const Clock::time_point after = Clock::now();
    measured.seconds.push_back(Seconds(after - before).count());
    do {
      measured.peak = std::max(measured.peak, fma_rate(of.threads));
    } while (Clock::now() - after < kProbeShare * (after - before));
    const double spent = Seconds(Clock::now() - start).count();
    const double of_calls =
        static_cast<double>(measured.seconds.size()) / static_cast<double>(wanted);
    share = options.min_time > 0 ? std::min(of_calls, spent / options.min_time) : of_calls;
    progress(std::min(share, 1.0));
  }
  return measured;
}

BenchRow row_of(const BenchCase& of, Measured measured) {
  BenchRow row;
  row.operation = name_of(of.operation);
  row.n = of.n;
  row.d_k = of.d_k;
  row.heads = of.heads;
  row.causal = of.causal;
  row.weights = of.weights;
  row.threads = of.threads;
  row.kernel = name_of(of.kernel);
  row.calls = std::ssize(measured.seconds);
  const SortedSample seconds(std::move(measured.seconds));
  const auto milliseconds = [&](double p) { return 1e3 * seconds.quantile(p).value_or(0); };
  row.median_ms = milliseconds(0.5);
  row.p25_ms = milliseconds(0.25);
  row.p75_ms = milliseconds(0.75);
  row.best_ms = milliseconds(0);
  // The best against the best: on a machine that is shared the median tells of the neighbours.
  row.gflops = bench_flops(of) / (1e6 * row.best_ms);
  row.peak_gflops = 1e-9 * measured.peak;
  row.peak_share = row.gflops / row.peak_gflops;
  if (measured.memory) row.peak_memory_mib = static_cast<double>(*measured.memory) / 0x1p20;
  return row;
}

// At least three, and no exponent where people would write none.
std::string three_digits(double value) {
  return value >= 999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// How long a row takes, roughly: for the progress of the run alone.
double expected_seconds(const BenchCase& of, const BenchOptions& options) {
  const double rate = (of.kernel == Kernel::full ? 1e10 : 5e10) * static_cast<double>(of.threads);
  return options.min_time + static_cast<double>(options.repeat + 1) * bench_flops(of) / rate;
}

}  // namespace

std::vector<BenchCase> bench_cases(const BenchOptions& options) {
  require_list(options.d_k, "d_k");
  require_choices(options.operation, "operation");
  std::vector<Index> sizes = options.n;
  std::vector<Kernel> kernels = options.kernel;
  if (kernels.empty()) {
    kernels =
        sizes.empty() ? std::vector{Kernel::tiled, Kernel::full} : std::vector{Kernel::automatic};
  }
  if (sizes.empty()) sizes = {256, 512, 1024, 2048};
  require_list(sizes, "n");
  require_choices(kernels, "kernel");

  std::vector<BenchCase> cases;
  for (const BenchOperation operation : options.operation) {
    const bool gives_weights = operation != BenchOperation::backward;
    if (!gives_weights && options.weights.value_or(false)) {
      throw InputError("", "weights", "true", "cannot go with operation backward, which has none");
    }
    for (const Index d_k : options.d_k) {
      for (const Index n : sizes) {
        for (const Kernel kernel : kernels) {
          BenchCase& one = cases.emplace_back();
          one.operation = operation;
          one.n = n;
          one.d_k = d_k;
          one.heads = options.heads;
          one.causal = options.causal;
          one.weights = gives_weights && options.weights.value_or(kernel == Kernel::full);
          one.kernel = kernel;
          one.threads = thread_count(options.threads);
          require_memory(bench_bytes(one), "n", std::to_string(n));
        }
      }
    }
  }
  return cases;
}

std::string bench_finding(const std::vector<BenchRow>& rows) {
  if (rows.empty()) return "";
  const BenchRow& largest = *std::max_element(
      rows.begin(), rows.end(), [](const BenchRow& a, const BenchRow& b) { return a.n < b.n; });
  std::vector<BenchRow> group;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(group), [&](const BenchRow& row) {
    return row.operation == largest.operation && row.n == largest.n && row.d_k == largest.d_k;
  });
  const auto [fast, slow] = std::minmax_element(
      group.begin(), group.end(),
      [](const BenchRow& a, const BenchRow& b) { return a.median_ms < b.median_ms; });
  std::string text = fmt::format(
      "At n {} and d_k {} {} of {} head{} takes {} ms by the {} kernel, at best {:.0f}% of the "
      "multiply-adds that {} thread{} can do",
      fast->n, fast->d_k, fast->operation, fast->heads, fast->heads == 1 ? "" : "s",
      three_digits(fast->median_ms), fast->kernel, 100 * fast->peak_share, fast->threads,
      fast->threads == 1 ? "" : "s");
  if (fast->kernel == slow->kernel) return text + ".";
  text += fmt::format(": {} times as fast as {} with {} ms",
                      three_digits(slow->median_ms / fast->median_ms), slow->kernel,
                      three_digits(slow->median_ms));
  if (fast->peak_memory_mib && slow->peak_memory_mib) {
    const bool keeps_weights = slow->weights && !fast->weights;
    text += fmt::format(", and in {} MiB of memory where {}{} takes {}",
                        three_digits(*fast->peak_memory_mib), slow->kernel,
                        keeps_weights ? ", which keeps the weights," : "",
                        three_digits(*slow->peak_memory_mib));
  }
  return text + ".";
}

BenchResult bench(const BenchOptions& options, const Watch& watch) {
  const std::vector<BenchCase> cases = bench_cases(options);
  std::vector<double> costs;
  costs.reserve(cases.size());
  for (const BenchCase& one : cases) costs.push_back(expected_seconds(one, options));
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  BenchResult result;
  double before = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto progress = [&](double share) {
      if (watch.progress) watch.progress((before + costs[i] * share) / total);
    };
    Measured measured = measure(cases[i], options, watch, progress);
    if (watch.cancelled()) {
      result.status.interrupted = true;
      break;
    }
    before += costs[i];
    result.rows.push_back(row_of(cases[i], std::move(measured)));
    if (watch.row) watch.row(result_of(result.rows.back()));
  }
  result.finding = bench_finding(result.rows);
  return result;
}

}  // namespace attnlab
