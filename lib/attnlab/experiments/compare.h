#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"

namespace attnlab {

// Two tensors, or two result files with all they hold.
struct CompareOptions {
  TensorSource a, b;
  std::optional<double> atol, rtol;

  static constexpr auto fields() {
    using O = CompareOptions;
    return std::tuple(
        field("a", &O::a, "a tensor, or a result (.json)", {.unit = "FILE", .positional = true}),
        field("b", &O::b, "what it is held against", {.unit = "FILE", .positional = true}),
        field("atol", &O::atol,
              "absolute tolerance: apart where |a - b| > atol + rtol |b|; by the narrower dtype "
              "unless given: float64 1e-12, float32 1e-6, float16 1e-3, bfloat16 1e-2, integers 0",
              {.range = at_least(0.0)}),
        field("rtol", &O::rtol, "relative tolerance, of the same size unless given",
              {.range = at_least(0.0)}));
  }
};

// How two entries of one name differ: tensors, or of results also texts, booleans and undefined
// values, which agree with their like only. Figures are over the elements that are finite numbers
// in both; integers are compared as integers. Of what only one side has, every element is apart.
struct CompareRow {
  std::string name;
  std::string shape;
  std::string dtype_a, dtype_b;
  bool equal = false;
  Index apart = 0;
  std::optional<double> max_abs_error, max_rel_error, relative_norm, correlation;
  std::string where;
  std::optional<double> a, b;
  double atol = 0, rtol = 0;

  static constexpr auto fields() {
    using R = CompareRow;
    return std::tuple(
        field("name", &R::name, "the tensor, scalar or column"),
        field("shape", &R::shape, "its shape"), field("dtype_a", &R::dtype_a, "dtype of a"),
        field("dtype_b", &R::dtype_b, "dtype of b"),
        field("equal", &R::equal, "every element agrees within the tolerance"),
        field("apart", &R::apart, "elements that do not"),
        field("max_abs_error", &R::max_abs_error, "max |a - b|"),
        field("max_rel_error", &R::max_rel_error, "max |a - b| / |b| where b is not 0"),
        field("relative_norm", &R::relative_norm, "||a - b|| / ||b||"),
        field("correlation", &R::correlation, "Pearson's, of the elements"),
        field("where", &R::where, "index of the largest absolute error"),
        field("a", &R::a, "a there"), field("b", &R::b, "b there"),
        field("atol", &R::atol, "absolute tolerance used"),
        field("rtol", &R::rtol, "relative tolerance used"));
  }
};

struct CompareResult {
  std::vector<CompareRow> rows;
  bool equal = true;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = CompareResult;
    return std::tuple(field("rows", &R::rows, "one row a tensor"),
                      field("equal", &R::equal, "everything agrees within the tolerance"));
  }
};

// Throws InputError when a file cannot be read, a shape differs or no name is common. NaN agrees
// with NaN, and an infinity with itself; both are apart from everything else.
CompareResult compare(const CompareOptions& options, const Request& want);

}  // namespace attnlab
