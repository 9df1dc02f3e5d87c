#include "attnlab/attention/scaled_dot_product.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include "attnlab/attention/earlier_result.h"
#include "attnlab/attention/kernel/full.h"
#include "attnlab/attention/kernel/tiled.h"
#include "attnlab/attention/kernel/worthwhile_threads.h"
#include "attnlab/attention/requirements.h"
#include "attnlab/attention/room.h"
#include "attnlab/core/threads.h"

namespace attnlab {
namespace {

// Calls f(name, matrix) for each of the [batch, heads, n, m] matrices.
template <class T, class F>
void for_each_matrix(AttentionResult<T>& result, const F& f) {
  f("raw_scores", result.raw_scores);
  f("scores", result.scores);
  f("capped_scores", result.capped_scores);
  f("masked_scores", result.masked_scores);
  f("weights", result.weights);
}

// Leaves what can be written over of an earlier result, and gives back the other matrices. What is
// wanted beside it.
template <class T>
Request keep_room(const Mask& mask, const Request& want, AttentionResult<T>& result) {
  // Compared by axes: of sizes that nobody has checked there may be no shape.
  const std::array<Index, 4> axes = {mask.batch(), mask.heads(), mask.queries(), mask.keys()};
  Request missing;
  for_each_matrix(result, [&](std::string_view name, std::optional<Tensor<T>>& matrix) {
    if (matrix && !(want.has(name) && has_room(*matrix, axes))) matrix.reset();
    if (want.has(name) && !matrix) missing.add(name);
  });
  return missing;
}

// Room for the output and the matrices that are missing.
template <class T>
void make_room(const Mask& mask, Index d_v, const Request& missing, AttentionResult<T>& result) {
  const Index b = mask.batch(), h = mask.heads(), n = mask.queries(), m = mask.keys();
  for_each_matrix(result, [&](std::string_view name, std::optional<Tensor<T>>& matrix) {
    if (missing.has(name)) matrix = Tensor<T>::uninitialized({b, h, n, m});
  });
  const Shape output{b, h, n, d_v};
  if (!has_room(result.output, output.axes())) result.output = Tensor<T>::uninitialized(output);
}

template <class T>
Index threads_for(const KernelCall<T>& call) {
  const double work = static_cast<double>(call.q.size()) * static_cast<double>(call.mask.keys());
  return worthwhile_threads(work, call.settings.threads);
}

// Every head in blocks of `rows_at_once` queries, over the threads.
template <class T, class Attend>
void for_each_block(const KernelCall<T>& call, Index rows_at_once, AttentionResult<T>& result,
                    Attend&& attend) {
  const Index n = call.mask.queries();
  const Index blocks = (n + rows_at_once - 1) / rows_at_once;
  const Index count = call.mask.batch() * call.mask.heads() * blocks;
  const Index threads = threads_for(call);
  std::atomic<Index> empty_rows{0}, overflowed_rows{0};
  parallel_for(threads, count, [&](Index task) {
    const Index head = task / blocks;
    // The last first: under a causal mask they see the most keys.
    const Index first = (blocks - 1 - task % blocks) * rows_at_once;
    const RowBlock block{head / call.mask.heads(), head % call.mask.heads(), first,
                         std::min(rows_at_once, n - first)};
    const ZeroRows rows = attend(call, block, result);
    empty_rows += rows.empty;
    overflowed_rows += rows.overflowed;
  });
  result.empty_rows = empty_rows;
  result.overflowed_rows = overflowed_rows;
}

// In groups that leave work for every thread, and few enough that the weights of a block, which are
// kept until the sum is known, stay in a cache. Of 768 KB to 6 MB, 3 MB were the fastest.
template <class T>
Index tiled_rows(const KernelCall<T>& call, bool wants_weights) {
  constexpr Index kGroup = 24, kTasksAThread = 4;
  constexpr Index kWeightBytes = 3 * 1024 * 1024;
  const Index heads = call.mask.batch() * call.mask.heads(), n = call.mask.queries();
  Index rows = kTiledRows;
  if (wants_weights) {
    const Index bytes = std::max<Index>(1, call.mask.keys()) * static_cast<Index>(sizeof(T));
    rows = std::clamp(kWeightBytes / bytes / kGroup * kGroup, kGroup, rows);
  }
  const Index threads = thread_count(threads_for(call));
  const Index tasks = threads == 1 ? 1 : kTasksAThread * threads;
  while (rows > kGroup && heads * ((n + rows - 1) / rows) < tasks) rows /= 2;
  return std::max(kGroup, rows / kGroup * kGroup);
}

// The output and weights by the tiled kernel; the matrices before them, which it never has whole,
// by the full one: so that asking for them changes nothing else.
template <class T>
void attend_by_tiles(const KernelCall<T>& call, AttentionResult<T>& result) {
  const bool wants_steps =
      result.raw_scores || result.scores || result.capped_scores || result.masked_scores;
  if (wants_steps) {
    AttentionResult<T> steps;
    steps.output = Tensor<T>::uninitialized(result.output.shape());
    const auto exchange = [&] {
      std::swap(steps.raw_scores, result.raw_scores);
      std::swap(steps.scores, result.scores);
      std::swap(steps.capped_scores, result.capped_scores);
      std::swap(steps.masked_scores, result.masked_scores);
    };
    exchange();
    for_each_block(call, kFullRows, steps, attend_full<T>);
    exchange();
  }
  for_each_block(call, tiled_rows(call, result.weights.has_value()), result, attend_tiled<T>);
}

}  // namespace

template <class T>
void scaled_dot_product(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                        const Mask& mask, const AttentionSettings& settings, const Request& want,
                        AttentionResult<T>& result) {
  const Request missing = keep_room(mask, want, result);
  require_attention<T>(q.shape(), k.shape(), v.shape(), mask, settings, missing);
  make_room(mask, v.shape()[3], missing, result);
  const Values<T> values(v);
  const KernelCall<T> call{q, k, values, mask, settings};
  switch (settings.kernel) {
    case Kernel::automatic:
    case Kernel::tiled:
      attend_by_tiles(call, result);
      break;
    case Kernel::full:
      for_each_block(call, kFullRows, result, attend_full<T>);
      break;
  }
}

template <class T>
AttentionResult<T> scaled_dot_product(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                      const Mask& mask, const AttentionSettings& settings,
                                      const Request& want) {
  AttentionResult<T> result;
  scaled_dot_product(q, k, v, mask, settings, want, result);
  return result;
}

template AttentionResult<float> scaled_dot_product(const Tensor<float>&, const Tensor<float>&,
                                                   const Tensor<float>&, const Mask&,
                                                   const AttentionSettings&, const Request&);
template AttentionResult<double> scaled_dot_product(const Tensor<double>&, const Tensor<double>&,
                                                    const Tensor<double>&, const Mask&,
                                                    const AttentionSettings&, const Request&);
template void scaled_dot_product(const Tensor<float>&, const Tensor<float>&, const Tensor<float>&,
                                 const Mask&, const AttentionSettings&, const Request&,
                                 AttentionResult<float>&);
template void scaled_dot_product(const Tensor<double>&, const Tensor<double>&,
                                 const Tensor<double>&, const Mask&, const AttentionSettings&,
                                 const Request&, AttentionResult<double>&);

}  // namespace attnlab
