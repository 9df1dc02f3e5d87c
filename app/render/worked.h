#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "render/trace.h"

namespace attnlab {

// Numbers of a calculation written out, for traces. What is shown as the result is always the
// element of the computed matrix; where the terms written out do not give it (positions rotated,
// weights dropped), nothing is shown.

// A row or a column of one matrix of a tensor.
struct Line {
  const AnyTensor* tensor = nullptr;
  Index first = 0, stride = 1, count = 0;

  Index index(Index i) const { return first + i * stride; }
  double at(Index i) const { return tensor->at(index(i)); }
};
Line row_of(const AnyTensor& tensor, Index row, Index matrix = 0);
Line column_of(const AnyTensor& tensor, Index column, Index matrix = 0);

// "weights[4, 1]"
std::string entry(std::string_view name, Index row, Index column);
// Element i of the line, rounded; in parentheses when negative, so that it can follow a sign.
std::string factor(const Line& line, Index i, int digits);
std::string factor(double value, int digits);

// "a + b + ... + z", or with commas: of more than six the first and last three.
std::string sum_text(const std::vector<std::string>& terms);
std::string list_text(const std::vector<std::string>& items);

// left = symbols = a_0*b_0 + a_1*b_1 + ... (+ bias) = result. Terms whose first factor is zero are
// left out. Empty when the terms do not give the result.
std::vector<Equation> product_equation(std::string left, std::string symbols, const Line& a,
                                       const Line& b, std::optional<double> bias, double result,
                                       int digits);

}  // namespace attnlab
