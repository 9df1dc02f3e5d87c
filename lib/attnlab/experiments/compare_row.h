#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"

namespace attnlab {

// How two entries of one name differ: tensors, or of results also texts, booleans and undefined
// values, which agree with their like only. Figures are over the elements that are finite numbers
// in both; integers are compared as integers. Of what only one side has, every element is apart.
//
// The reference is b, or the float64 result of a case, on whichever side that stands.
struct CompareRow {
  std::string name;
  std::string shape;
  std::string dtype_a, dtype_b;
  bool equal = false;
  Index apart = 0;
  std::optional<double> max_abs_error, max_rel_error, max_ulp, relative_norm, correlation;
  std::optional<std::string> first_apart;
  std::string where;
  std::optional<double> a, b;
  double atol = 0, rtol = 0;
  Index exact = 0;
  std::vector<Index> decades, in_decade;
  std::optional<std::string> plain_dtype;
  std::optional<double> plain_error, plain_relative_norm, error_ratio;
  std::optional<double> careless_error, careless_relative_norm;
  std::optional<double> careless_all_error, careless_all_relative_norm;
  std::optional<bool> careless_passes;

  static constexpr auto fields() {
    using R = CompareRow;
    return std::tuple(
        field("name", &R::name, "the tensor, scalar or column"),
        field("shape", &R::shape, "its shape"), field("dtype_a", &R::dtype_a, "dtype of a"),
        field("dtype_b", &R::dtype_b, "dtype of b"),
        field("equal", &R::equal, "every element agrees within the tolerance"),
        field("apart", &R::apart, "elements that do not"),
        field("max_abs_error", &R::max_abs_error, "max |a - b|, where both are finite numbers"),
        field("max_rel_error", &R::max_rel_error,
              "max |a - b| / |reference| where that is not 0; the reference is b, or of a case the "
              "float64 result"),
        field("max_ulp", &R::max_ulp,
              "most steps from a to the next number of the narrower dtype until b, both rounded to "
              "it; undefined for integers"),
        field("relative_norm", &R::relative_norm, "||a - b|| / ||reference||"),
        field("correlation", &R::correlation, "Pearson's, of the elements"),
        field("first_apart", &R::first_apart,
              "index of the first element that does not agree, if there is one"),
        field("where", &R::where, "index of the largest absolute error"),
        field("a", &R::a, "a there"), field("b", &R::b, "b there"),
        field("atol", &R::atol, "absolute tolerance used"),
        field("rtol", &R::rtol, "relative tolerance used"),
        field("exact", &R::exact, "elements with a = b, what is not finite among them"),
        field("decades", &R::decades, "exponents E, one after the other, of the errors there are"),
        field("in_decade", &R::in_decade, "elements with 10^E <= |a - b| < 10^(E+1)"),
        field("plain_dtype", &R::plain_dtype,
              "of a case: the narrower of its dtype and the candidate's"),
        field("plain_error", &R::plain_error,
              "of a case: max_abs_error of attend --kernel full in that dtype"),
        field("plain_relative_norm", &R::plain_relative_norm, "its relative_norm"),
        field("error_ratio", &R::error_ratio, "max_abs_error / plain_error"),
        field("careless_error", &R::careless_error,
              "of a case: max_abs_error of equal weights on the keys that each row may see, whose "
              "output is the mean of V over them"),
        field("careless_relative_norm", &R::careless_relative_norm, "its relative_norm"),
        field("careless_all_error", &R::careless_all_error,
              "max_abs_error of the mean of V over all keys, where there is a mask"),
        field("careless_all_relative_norm", &R::careless_all_relative_norm, "its relative_norm"),
        field("careless_passes", &R::careless_passes,
              "whether one of these would pass the tolerance"));
  }
};

}  // namespace attnlab
