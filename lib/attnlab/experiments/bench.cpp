#include "attnlab/experiments/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <span>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/core/threads.h"
#include "attnlab/experiments/bench_turns.h"
#include "attnlab/experiments/scaling_list.h"
#include "attnlab/stats/quantile.h"

namespace attnlab {
namespace {

template <class Choice>
std::string name_of(Choice choice) {
  return std::string(kChoiceNames<Choice>[static_cast<std::size_t>(choice)]);
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

// Elements of a tensor [heads, n, d_k].
double numbers_of(const BenchCase& of) {
  return static_cast<double>(of.heads) * static_cast<double>(of.n) * static_cast<double>(of.d_k);
}

BenchRow row_of(const BenchCase& of, BenchMeasured measured) {
  BenchRow row;
  row.operation = name_of(of.operation);
  row.n = of.n;
  row.d_k = of.d_k;
  row.heads = of.heads;
  row.causal = of.causal;
  row.weights = of.weights;
  row.threads = of.threads;
  if (of.operation != BenchOperation::normals) row.kernel = name_of(of.kernel);
  row.buffers = name_of(of.buffers);
  row.calls = std::ssize(measured.seconds);
  const SortedSample seconds(std::move(measured.seconds));
  const auto milliseconds = [&](double p) { return 1e3 * seconds.quantile(p).value_or(0); };
  row.median_ms = milliseconds(0.5);
  row.p25_ms = milliseconds(0.25);
  row.p75_ms = milliseconds(0.75);
  row.best_ms = milliseconds(0);
  // The best against the best: on a machine that is shared the median tells of the neighbours.
  row.peak_gflops = 1e-9 * measured.peak;
  if (const auto flops = bench_flops(of)) {
    row.gflops = *flops / (1e6 * row.best_ms);
    row.peak_share = *row.gflops / row.peak_gflops;
  } else {
    row.values_per_second = numbers_of(of) / (1e-3 * row.best_ms);
  }
  if (measured.memory) row.peak_memory_mib = static_cast<double>(*measured.memory) / 0x1p20;
  return row;
}

// The rows of one call on different numbers of threads.
std::vector<BenchRow> rows_of(std::span<const BenchCase> cases,
                              std::vector<BenchMeasured> measured) {
  std::vector<BenchRow> rows;
  rows.reserve(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    rows.push_back(row_of(cases[i], std::move(measured[i])));
  }
  const auto one =
      std::find_if(rows.begin(), rows.end(), [](const BenchRow& row) { return row.threads == 1; });
  if (one == rows.end()) return rows;
  for (BenchRow& row : rows) row.speedup = one->best_ms / row.best_ms;
  return rows;
}

// At least three, and no exponent where people would write none.
std::string three_digits(double value) {
  return value >= 999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// How long a row takes, roughly: for the progress of the run alone.
double expected_seconds(const BenchCase& of, const BenchOptions& options) {
  const double rate = (of.kernel == Kernel::full ? 1e10 : 5e10) * static_cast<double>(of.threads);
  const double work = bench_flops(of).value_or(50 * numbers_of(of));
  return options.min_time + static_cast<double>(options.repeat + 1) * work / rate;
}

// What `operation` has not, and is asked for all the same.
void require_parts(BenchOperation operation, const BenchOptions& options) {
  const auto refuse = [&](const char* field, const std::string& value) {
    throw InputError("", field, value,
                     "cannot go with operation " + name_of(operation) + ", which has none");
  };
  const bool normals = operation == BenchOperation::normals;
  if ((normals || operation == BenchOperation::backward) && options.weights.value_or(false)) {
    refuse("weights", "true");
  }
  if (normals && options.causal) refuse("causal", "true");
  if (normals && !options.kernel.empty()) refuse("kernel", name_of(options.kernel.front()));
}

// The numbers of threads, each once: 0 may be one of the others.
std::vector<Index> thread_counts(const std::vector<Index>& requested) {
  require_list(requested, "threads");
  std::vector<Index> counts;
  for (const Index threads : requested) {
    const Index count = thread_count(threads);
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  return counts;
}

// The lists that the options give or leave open.
struct BenchLists {
  std::vector<Index> n, threads;
  std::vector<Kernel> kernels;
};

BenchLists lists_of(const BenchOptions& options) {
  require_list(options.d_k, "d_k");
  require_choices(options.operation, "operation");
  require_choices(options.buffers, "buffers");
  BenchLists lists{options.n, thread_counts(options.threads), options.kernel};
  if (lists.kernels.empty()) {
    lists.kernels = options.n.empty() ? std::vector{Kernel::tiled, Kernel::full}
                                      : std::vector{Kernel::automatic};
  }
  if (lists.n.empty()) lists.n = {256, 512, 1024, 2048};
  require_list(lists.n, "n");
  require_choices(lists.kernels, "kernel");
  return lists;
}

// Calls add(case) for each of one operation and width.
template <class Add>
void for_each_case(BenchOperation operation, Index d_k, const BenchOptions& options,
                   const BenchLists& lists, const Add& add) {
  const bool normals = operation == BenchOperation::normals;
  const bool gives_weights = !normals && operation != BenchOperation::backward;
  BenchCase one;
  one.operation = operation;
  one.d_k = d_k;
  one.heads = options.heads;
  one.causal = options.causal;
  for (const Index n : lists.n) {
    one.n = n;
    for (const Kernel kernel : normals ? std::vector{Kernel::automatic} : lists.kernels) {
      one.kernel = kernel;
      one.weights = gives_weights && options.weights.value_or(kernel == Kernel::full);
      for (const BenchBuffers buffers : options.buffers) {
        one.buffers = buffers;
        add(one);
      }
    }
  }
}

// How many of the cases from the first on differ in their threads alone.
std::size_t turns_of(std::span<const BenchCase> cases) {
  const auto other = std::find_if(cases.begin(), cases.end(), [&](BenchCase of) {
    of.threads = cases.front().threads;
    return of != cases.front();
  });
  return static_cast<std::size_t>(other - cases.begin());
}

std::string count_of(Index count, const char* unit) {
  return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s");
}

// What a call of attention takes, and by how much its kernel is ahead of the slowest.
std::string kernel_finding(const BenchRow& fast, const BenchRow& slow) {
  std::string text = fmt::format(
      "At n {} and d_k {} {} of {} takes {} ms {}by the {} kernel, at best {:.0f}% of the "
      "multiply-adds that {} can do",
      fast.n, fast.d_k, fast.operation, count_of(fast.heads, "head"), three_digits(fast.median_ms),
      fast.buffers == "warm" ? "into warm buffers " : "", fast.kernel.value_or(""),
      100 * fast.peak_share.value_or(0), count_of(fast.threads, "thread"));
  if (fast.kernel == slow.kernel) return text + ".";
  text += fmt::format(": {} times as fast as {} with {} ms",
                      three_digits(slow.median_ms / fast.median_ms), slow.kernel.value_or(""),
                      three_digits(slow.median_ms));
  if (fast.peak_memory_mib && slow.peak_memory_mib) {
    const bool keeps_weights = slow.weights && !fast.weights;
    text += fmt::format(", and in {} MiB of memory where {}{} takes {}",
                        three_digits(*fast.peak_memory_mib), slow.kernel.value_or(""),
                        keeps_weights ? ", which keeps the weights," : "",
                        three_digits(*slow.peak_memory_mib));
  }
  return text + ".";
}

}  // namespace

std::vector<BenchCase> bench_cases(const BenchOptions& options) {
  const BenchLists lists = lists_of(options);
  std::vector<BenchCase> cases;
  for (const BenchOperation operation : options.operation) {
    require_parts(operation, options);
    for (const Index d_k : options.d_k) {
      for_each_case(operation, d_k, options, lists, [&](BenchCase one) {
        require_memory(bench_bytes(one), "n", std::to_string(one.n));
        for (const Index threads : lists.threads) {
          one.threads = threads;
          cases.push_back(one);
        }
      });
    }
  }
  return cases;
}

std::string bench_finding(const std::vector<BenchRow>& rows) {
  if (rows.empty()) return "";
  const BenchRow& largest = *std::max_element(
      rows.begin(), rows.end(), [](const BenchRow& a, const BenchRow& b) { return a.n < b.n; });
  const auto rows_like = [&](const auto& like) {
    std::vector<BenchRow> group;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(group), [&](const BenchRow& row) {
      return row.operation == largest.operation && row.n == largest.n && row.d_k == largest.d_k &&
             like(row);
    });
    return group;
  };
  const auto faster = [](const BenchRow& a, const BenchRow& b) {
    return a.median_ms < b.median_ms;
  };
  const auto all = rows_like([](const BenchRow&) { return true; });
  const BenchRow& fast = *std::min_element(all.begin(), all.end(), faster);
  const auto alike = rows_like([&](const BenchRow& row) {
    return row.threads == fast.threads && row.buffers == fast.buffers;
  });
  std::string text =
      fast.values_per_second
          ? fmt::format("{} normals take {} ms on {}: {:.3g} a second at best.",
                        fast.n * fast.d_k * fast.heads, three_digits(fast.median_ms),
                        count_of(fast.threads, "thread"), *fast.values_per_second)
          : kernel_finding(fast, *std::max_element(alike.begin(), alike.end(), faster));
  if (fast.speedup && fast.threads > 1) {
    text += fmt::format(" {} are {} times as fast as one.", count_of(fast.threads, "thread"),
                        three_digits(*fast.speedup));
  }
  return text;
}

BenchResult bench(const BenchOptions& options, const Watch& watch) {
  const std::vector<BenchCase> cases = bench_cases(options);
  const auto cost = [&](double sum, const BenchCase& one) {
    return sum + expected_seconds(one, options);
  };
  const double total = std::accumulate(cases.begin(), cases.end(), 0.0, cost);
  BenchResult result;
  double before = 0;
  for (std::span<const BenchCase> left = cases; !left.empty();) {
    const auto turns = left.first(turns_of(left));
    const double after = std::accumulate(turns.begin(), turns.end(), before, cost);
    const auto progress = [&](double share) {
      if (watch.progress) watch.progress((before + (after - before) * share) / total);
    };
    auto measured =
        measure_in_turns(turns, options.seed, options.repeat, options.min_time, watch, progress);
    if (watch.cancelled()) {
      result.status.interrupted = true;
      break;
    }
    for (BenchRow& row : rows_of(turns, std::move(measured))) {
      result.rows.push_back(std::move(row));
      if (watch.row) watch.row(result_of(result.rows.back()));
    }
    left = left.subspan(turns.size());
    before = after;
  }
  result.finding = bench_finding(result.rows);
  return result;
}

}  // namespace attnlab
