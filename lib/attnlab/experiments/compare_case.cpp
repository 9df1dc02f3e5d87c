#include "attnlab/experiments/compare_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/case_candidate.h"
#include "attnlab/experiments/case_verdict.h"
#include "attnlab/experiments/comparison.h"
#include "attnlab/experiments/rounding.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

// How often the plain path's error is allowed: another order of summation may well double it.
constexpr double kTimesPlain = 4;

std::string file_in(const std::string& path, std::string_view folder, const std::string& name) {
  return (fs::path(path) / folder / (name + ".npy")).string();
}

std::span<const Index> without_leading_ones(const Shape& shape) {
  std::span<const Index> axes = shape.axes();
  while (!axes.empty() && axes.front() == 1) axes = axes.subspan(1);
  return axes;
}

// The entry in the shape of the case. A batch or head axis of 1 may be there or not. Throws
// InputError.
void take_shape(ResultEntry& entry, const Shape& shape, const std::string& source) {
  if (entry.tensor.shape() == shape) return;
  const auto got = without_leading_ones(entry.tensor.shape()), need = without_leading_ones(shape);
  if (!std::equal(got.begin(), got.end(), need.begin(), need.end())) {
    throw InputError(source, entry.name, entry.tensor.shape().str(),
                     fmt::format("the case has {}: shapes must agree", shape.str()));
  }
  entry.tensor = entry.tensor.visit([&](const auto& tensor) -> AnyTensor {
    auto copy = tensor;
    return std::move(copy).reshaped(shape);
  });
}

// [batch, heads, n, d] of a matrix with these axes.
Shape four_axes(const CaseMatrix& matrix, const Shape& shape, const std::string& source) {
  constexpr std::array<std::string_view, 4> kAxes = {"batch", "head", "row", "column"};
  if (static_cast<int>(matrix.axes.size()) != shape.rank()) {
    throw InputError(source, matrix.name, shape.str(),
                     fmt::format("need the axes of case.json, {}", fmt::join(matrix.axes, ", ")));
  }
  std::array<Index, 4> lengths = {1, 1, 1, 1};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto place =
        std::find(kAxes.begin(), kAxes.end(), matrix.axes[static_cast<std::size_t>(axis)]);
    lengths[static_cast<std::size_t>(place - kAxes.begin())] = shape[axis];
  }
  return Shape(lengths);
}

// Makes the steps of the walk.
class CaseWalk {
 public:
  CaseWalk(std::string path, const CaseDescription& description, const CompareOptions& options,
           std::vector<std::string>& notes)
      : path_(std::move(path)), description_(description), options_(options), notes_(notes) {}

  CaseStep step(const CaseMatrix& matrix, const CaseCandidate& candidate) {
    CaseStep step;
    step.matrix = &matrix;
    const std::vector<std::string>& inputs = description_.inputs;
    step.given = std::find(inputs.begin(), inputs.end(), matrix.name) != inputs.end();
    if (!candidate.has(matrix.name)) return step;
    const ResultEntry reference = read(kReferenceFolder, matrix.name);
    ResultEntry got = candidate.read(matrix.name, notes_);
    take_shape(got, reference.tensor.shape(), candidate.source_of(matrix.name));
    const DType dtype =
        is_floating(got.dtype()) ? narrower(description_.dtype, got.dtype()) : description_.dtype;
    const Tolerance tolerance = tolerance_of(matrix, dtype);
    compare(got, reference, dtype, tolerance, step);
    add_plain_path(dtype, step);
    add_careless_answers(reference, dtype, tolerance, *step.row);
    return step;
  }

 private:
  ResultEntry read(std::string_view folder, const std::string& name) {
    return {name, read_tensor({.path = file_in(path_, folder, name), .values = {}}, "a", notes_)};
  }

  Tolerance tolerance_of(const CaseMatrix& matrix, DType dtype) const {
    const double least = default_tolerance(dtype);
    double absolute = least;
    if (const auto plain = matrix.plain.find(dtype); plain != matrix.plain.end()) {
      const double error = plain->second.max_abs_error.value_or(0);
      if (std::isfinite(error)) absolute = std::max(least, kTimesPlain * error);
    }
    return {options_.atol.value_or(absolute), options_.rtol.value_or(least)};
  }

  void compare(const ResultEntry& got, const ResultEntry& reference, DType dtype,
               const Tolerance& tolerance, CaseStep& step) const {
    const Shape shape =
        four_axes(*step.matrix, reference.tensor.shape(), file_in(path_, "", got.name));
    const Index columns = shape[3];
    DepartureSearch search(shape);
    for (Index row = 0; row < shape[0] * shape[1] * shape[2]; ++row) search.count_row();
    std::optional<Index> last_row;
    const auto apart = [&](Index i) {
      if (!last_row) {
        step.got = got.tensor.at(i);
        step.expected = reference.tensor.at(i);
      }
      if (last_row != i / columns) search.add(i / columns, i % columns);
      last_row = i / columns;
    };
    step.row = compare_entries(got, reference, dtype, tolerance, apart).row;
    step.departure = search.departure();
  }

  static void add_plain_path(DType dtype, CaseStep& step) {
    CompareRow& row = *step.row;
    row.plain_dtype = dtype_name(dtype);
    const auto plain = step.matrix->plain.find(dtype);
    if (plain == step.matrix->plain.end()) return;
    row.plain_error = plain->second.max_abs_error;
    row.plain_relative_norm = plain->second.relative_norm;
    if (row.max_abs_error && row.plain_error && *row.plain_error > 0) {
      row.error_ratio = *row.max_abs_error / *row.plain_error;
    }
  }

  void add_careless_answers(const ResultEntry& reference, DType dtype, const Tolerance& tolerance,
                            CompareRow& row) {
    const auto answer = [&](std::string_view folder, std::optional<double>& error,
                            std::optional<double>& relative_norm) {
      std::error_code ignored;
      const std::string file = file_in(path_, folder, reference.name);
      if (!fs::exists(file, ignored)) return;
      ResultEntry careless = read(folder, reference.name);
      take_shape(careless, reference.tensor.shape(), file);
      const CompareRow got = compare_entries(careless, reference, dtype, tolerance).row;
      error = got.max_abs_error;
      relative_norm = got.relative_norm;
      row.careless_passes = row.careless_passes.value_or(false) || got.equal;
    };
    answer(kSeenKeysFolder, row.careless_error, row.careless_relative_norm);
    answer(kAllKeysFolder, row.careless_all_error, row.careless_all_relative_norm);
  }

  std::string path_;
  const CaseDescription& description_;
  const CompareOptions& options_;
  std::vector<std::string>& notes_;
};

void note_missing(const std::vector<CaseStep>& steps, const std::string& source,
                  std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const CaseStep& step : steps) {
    if (!step.row && !step.given) names.push_back(step.matrix->name);
  }
  if (!names.empty())
    notes.push_back(fmt::format("{}: without {}", source, fmt::join(names, ", ")));
}

}  // namespace

CompareResult compare_case(const CompareOptions& options) {
  const bool is_a = is_case(options.a.path);
  const TensorSource& other = is_a ? options.b : options.a;
  const std::string& path = is_a ? options.a.path : options.b.path;
  CompareResult result;
  const CaseDescription description = read_case(path, is_a ? "a" : "b");
  const CaseCandidate candidate(other, is_a ? "b" : "a", description, result.notes);
  CaseWalk walk(path, description, options, result.notes);
  std::vector<CaseStep> steps;
  for (const CaseMatrix& matrix : description.matrices) {
    steps.push_back(walk.step(matrix, candidate));
  }
  note_missing(steps, candidate.source_of(""), result.notes);
  result.verdict = case_verdict(steps);
  const auto first = first_departing(steps);
  result.equal = first == steps.end();
  if (!result.equal) {
    result.departs = first->matrix->name;
    result.batch = first->departure->batch;
    result.head = first->departure->head;
    result.row = first->departure->row;
    result.column = first->departure->column;
  }
  for (CaseStep& step : steps) {
    // Of inputs it is enough that they are the same.
    if (!step.row || (step.given && step.row->equal)) continue;
    // The columns are called by what the user called a and b.
    if (is_a) {
      std::swap(step.row->a, step.row->b);
      std::swap(step.row->dtype_a, step.row->dtype_b);
    }
    result.rows.push_back(std::move(*step.row));
  }
  return result;
}

}  // namespace attnlab
