#pragma once

#include <functional>
#include <string>

#include "attnlab/experiments/compare_row.h"
#include "attnlab/io/result_file.h"

namespace attnlab {

// Elements agree where |got - reference| <= atol + rtol |reference|.
struct Tolerance {
  double atol = 0, rtol = 0;
};

// What rounding alone may cost in results of a dtype, with room for another order of summation:
// both tolerances are of this size unless given.
double default_tolerance(DType dtype);

// The row of two entries of one shape, and what is different about texts.
struct Comparison {
  CompareRow row;  // a is `got`, b the reference
  // "weights [0]: a has null, b has 3" of the first element that is no number in both and differs;
  // "" without one.
  std::string text_difference;
};

// Element by element; errors in units in the last place are of `dtype` and undefined for integers.
// NaN agrees with NaN, and an infinity with itself; both are apart from everything else. `apart` is
// told the elements that do not agree, in order.
Comparison compare_entries(const ResultEntry& got, const ResultEntry& reference, DType dtype,
                           const Tolerance& tolerance,
                           const std::function<void(Index)>& apart = nullptr);

}  // namespace attnlab
