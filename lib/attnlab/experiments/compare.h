#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/compare_row.h"

namespace attnlab {

// Two tensors, two result files with all they hold, or a case and what is held against it.
struct CompareOptions {
  TensorSource a, b;
  std::optional<double> atol, rtol;

  static constexpr auto fields() {
    using O = CompareOptions;
    return std::tuple(
        field("a", &O::a, "a tensor, a result (.json), or a case, the folder of attend --save-case",
              {.unit = "FILE", .positional = true}),
        field("b", &O::b,
              "what it is held against; with a case a folder of files named after its matrices, a "
              "file with tensors of such names, or an output",
              {.unit = "FILE", .positional = true}),
        field("atol", &O::atol,
              "absolute tolerance: apart where |a - b| > atol + rtol |b|; by the narrower dtype "
              "unless given: float64 1e-12, float32 1e-6, float16 1e-3, bfloat16 1e-2, integers 0; "
              "with a case b is its float64 result, and 4 times the error of the plain path if "
              "that is more",
              {.range = at_least(0.0)}),
        field("rtol", &O::rtol, "relative tolerance, by the narrower dtype alike unless given",
              {.range = at_least(0.0)}));
  }
};

struct CompareResult {
  std::vector<CompareRow> rows;
  bool equal = true;
  std::optional<std::string> verdict, departs;
  std::optional<Index> batch, head, row, column;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = CompareResult;
    return std::tuple(
        field("rows", &R::rows, "one row a tensor"),
        field("equal", &R::equal, "everything agrees within the tolerance"),
        field("verdict", &R::verdict, "of a case: what departs first, where, and what that shows"),
        field("departs", &R::departs, "of a case: the first matrix that departs"),
        field("batch", &R::batch, "batch entry of its first element apart"),
        field("head", &R::head, "its head"), field("row", &R::row, "its row"),
        field("column", &R::column, "its column"));
  }
};

// Throws InputError when a file cannot be read, a shape differs or no name is common. NaN agrees
// with NaN, and an infinity with itself; both are apart from everything else.
//
// The matrices of a case are walked in the order of computation and held against its float64
// reference, whichever side it stands on; of two cases a is the reference.
CompareResult compare(const CompareOptions& options, const Request& want);

}  // namespace attnlab
