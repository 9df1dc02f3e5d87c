#include "attnlab/experiments/save_case.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/comparison.h"
#include "attnlab/experiments/rounding.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/atomic_folder.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

constexpr std::string_view kField = "save_case";

// Calls f(name, source) for every tensor that the options name.
template <class F>
void for_each_source(AttendOptions& options, const F& f) {
  for (const OptionRef& option : options_of(options)) {
    auto* const* source = std::get_if<TensorSource*>(&option.value);
    if (source != nullptr && !(*source)->empty()) f(option.name, **source);
  }
}

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return Precision::float16;
    case DType::bfloat16:
      return Precision::bfloat16;
    case DType::float32:
      return Precision::float32;
    default:
      return Precision::float64;
  }
}

bool is_drawn(const AttendOptions& options) { return options.query_key.q.empty(); }

std::vector<ResultEntry> matrices_of(const AttendResult& result) {
  std::vector<ResultEntry> entries;
  for (const ResultRef& column : result_of(result)) {
    if (const AnyTensor* matrix = column.matrix()) {
      entries.push_back({std::string(column.name), *matrix});
    }
  }
  return entries;
}

const ResultEntry* find(const std::vector<ResultEntry>& entries, std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const ResultEntry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

// All that the calculation has, but not what it goes without.
Request every_step(Request want) {
  for (const ResultRef& column : columns_of<AttendResult>()) {
    if (column.is_matrix()) want.add_step(column.name);
  }
  return want;
}

// The same call in another dtype, step by step, from the same inputs.
AttendResult step_by_step(AttendOptions options, Precision dtype, const Request& want) {
  options.sizes.dtype = dtype;
  options.scores.kernel = Kernel::full;
  return attend(options, want);
}

// What the call starts from: Q, K, V and the past rounded as it has them, all else as it is given.
std::vector<ResultEntry> inputs_of(AttendOptions& read, const AttendResult& result) {
  std::vector<ResultEntry> inputs = {{"q", *result.q}, {"k", *result.k}, {"v", *result.v}};
  std::vector<std::string> ignored;
  for_each_source(read, [&](std::string_view name, TensorSource& source) {
    if (find(inputs, name) != nullptr) return;
    const bool rounded = name == "past_k" || name == "past_v";
    AnyTensor tensor = *source.values;
    if (rounded) tensor = rounded_to(result.output->dtype(), std::move(tensor), name, ignored);
    inputs.push_back({std::string(name), std::move(tensor)});
  });
  return inputs;
}

// The options of the case with its inputs in the place of their files.
AttendOptions with_inputs(AttendOptions options, const std::vector<ResultEntry>& inputs) {
  for_each_source(options, [&](std::string_view name, TensorSource& source) {
    source.values = find(inputs, name)->tensor;
    source.path.clear();
  });
  return options;
}

std::vector<std::string> axes_of(const AnyTensor& matrix, const AttendOptions& options,
                                 int query_rank) {
  // Heads side by side in the last axis.
  const bool packed = options.sizes.heads && query_rank == 3 && matrix.shape().rank() == 3;
  if (packed) return {"batch", "row", "column"};
  constexpr std::array<std::string_view, 4> kAxes = {"batch", "head", "row", "column"};
  return {kAxes.end() - matrix.shape().rank(), kAxes.end()};
}

std::vector<CaseMatrix> described(const AttendOptions& options, const AttendResult& result) {
  std::vector<CaseMatrix> matrices;
  for (const ResultRef& column : result_of(result)) {
    const AnyTensor* matrix = column.matrix();
    if (matrix == nullptr) continue;
    matrices.push_back({std::string(column.name),
                        std::string(column.formula),
                        axes_of(*matrix, options, result.q->shape().rank()),
                        {}});
  }
  // Past and current keys are put together before any score.
  std::stable_partition(matrices.begin(), matrices.end(), [](const CaseMatrix& matrix) {
    return matrix.formula.empty() || matrix.name.starts_with("present_");
  });
  return matrices;
}

// The error of the plain path, in the dtype of the call and in narrower ones.
void measure_plain_path(const AttendOptions& options, const Request& want,
                        const std::vector<ResultEntry>& reference, CaseDescription& description) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    if (unit_roundoff(dtype) < unit_roundoff(description.dtype)) continue;
    const std::vector<ResultEntry> plain =
        matrices_of(step_by_step(options, precision_of(dtype), want));
    for (CaseMatrix& matrix : description.matrices) {
      const CompareRow row = compare_entries(*find(plain, matrix.name),
                                             *find(reference, matrix.name), dtype, {kAny, 0})
                                 .row;
      matrix.plain[dtype] = {row.max_abs_error, row.relative_norm};
    }
  }
}

// What is added to scores, as what it hides.
Tensor<bool> seen_under(const AnyTensor& bias) {
  Tensor<bool> seen(bias.shape());
  for (Index i = 0; i < bias.size(); ++i) {
    seen[i] = bias.at(i) != -std::numeric_limits<double>::infinity();
  }
  return seen;
}

TensorSource zeros_like(const TensorSource& source) {
  if (source.empty()) return {};
  return {.path = {}, .values = AnyTensor(Tensor<double>(source.values->shape()))};
}

// Scores of 0 everywhere, so that softmax gives equal weights.
void answer_carelessly(const AttendOptions& options, AttentionCase& kept) {
  AttendOptions careless;
  careless.query_key = {zeros_like(options.query_key.q), zeros_like(options.query_key.k)};
  careless.value = options.value;
  careless.value.past.k = zeros_like(options.value.past.k);
  careless.sizes = options.sizes;
  careless.mask = options.mask;
  careless.run = options.run;
  MaskOptions& mask = careless.mask;
  const bool additive = mask.mask_kind == MaskKind::automatic || mask.mask_kind == MaskKind::add;
  if (!mask.mask.empty() && additive) {
    mask.mask.values = seen_under(*mask.mask.values);
    mask.mask_kind = MaskKind::attend;
  }
  // The offset was that of positions, which have no part in this.
  if (!mask.causal.value_or(false) && mask.window_left < 0 && mask.window_right < 0) {
    mask.offset.reset();
  }
  AttendResult seen = step_by_step(careless, Precision::float64, {"weights"});
  kept.seen_keys = {{"weights", *std::move(seen.attention.weights)},
                    {"output", *std::move(seen.output)}};
  if (!mask.masks()) return;
  mask = {};
  kept.all_keys = {{"output", *step_by_step(careless, Precision::float64, {}).output}};
}

}  // namespace

AttendResult attend_and_keep(const AttendOptions& options, const Request& want) {
  check_case_target(options.keep.save_case.path, kField);
  AttendOptions read = options;
  read.keep = {};
  std::vector<std::string> notes;
  for_each_source(read, [&](std::string_view name, TensorSource& source) {
    source.values = read_tensor(source, name, notes);
    source.path.clear();
  });
  const Request steps = every_step(want);
  AttendResult result = attend(read, steps);
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());

  AttentionCase kept;
  kept.inputs = inputs_of(read, result);
  result.kept.emplace(std::move(kept));
  const AttendOptions same = with_inputs(case_options(options, result), result.kept->inputs);
  AttentionCase& made = *result.kept;
  made.reference = matrices_of(step_by_step(same, Precision::float64, steps));
  made.description.dtype = result.output->dtype();
  for (const ResultEntry& input : made.inputs) made.description.inputs.push_back(input.name);
  made.description.matrices = described(same, result);
  measure_plain_path(same, steps, made.reference, made.description);
  answer_carelessly(same, made);
  return result;
}

AttendOptions case_options(const AttendOptions& options, const AttendResult& result) {
  AttendOptions rerun = options;
  rerun.keep = {};
  if (is_drawn(options)) rerun.sizes = {};  // they were for drawing
  rerun.sizes.dtype = precision_of(result.output->dtype());
  for (const OptionRef& option : options_of(rerun)) {
    auto* const* source = std::get_if<TensorSource*>(&option.value);
    if (source == nullptr || find(result.kept->inputs, option.name) == nullptr) continue;
    **source = {.path = std::string(option.name) + ".npy", .values = {}};
  }
  return rerun;
}

void write_case(const std::string& path, const AttendResult& result, const std::string& config) {
  check_case_target(path, kField);
  const AttentionCase& kept = *result.kept;
  AtomicFolder folder(path, kField);
  const auto write = [&](std::string_view subfolder, const ResultEntry& entry) {
    const std::string name = entry.name + ".npy";
    write_tensor(folder.file(subfolder.empty() ? name : std::string(subfolder) + "/" + name),
                 entry.tensor, kField);
  };
  write_file_atomically(folder.file("config.json"), config, kField);
  write_file_atomically(folder.file("case.json"), case_json(kept.description), kField);
  for (const ResultEntry& input : kept.inputs) write("", input);
  for (const ResultEntry& matrix : matrices_of(result)) {
    if (find(kept.inputs, matrix.name) == nullptr) write("", matrix);
  }
  for (const ResultEntry& matrix : kept.reference) write(kReferenceFolder, matrix);
  for (const ResultEntry& matrix : kept.seen_keys) write(kSeenKeysFolder, matrix);
  for (const ResultEntry& matrix : kept.all_keys) write(kAllKeysFolder, matrix);
  folder.commit();
}

}  // namespace attnlab
