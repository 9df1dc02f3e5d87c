#include "render/worked.h"

#include <fmt/format.h>

#include <cmath>

#include "render/elide.h"
#include "render/rounded_text.h"

namespace attnlab {
namespace {

constexpr Index kMostTerms = 6;

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (const Index i : elided(std::ssize(items), kMostTerms)) {
    if (!text.empty()) text += separator;
    text += i == kGap ? "..." : items[static_cast<std::size_t>(i)];
  }
  return text;
}

std::string in_parentheses(std::string number) {
  return number.front() == '-' ? "(" + number + ")" : number;
}

}  // namespace

Line row_of(const AnyTensor& tensor, Index row, Index matrix) {
  const Shape& shape = tensor.shape();
  const Index columns = shape[-1];
  const Index rows = shape.rank() >= 2 ? shape[-2] : 1;
  return {&tensor, (matrix * rows + row) * columns, 1, columns};
}

Line column_of(const AnyTensor& tensor, Index column, Index matrix) {
  const Shape& shape = tensor.shape();
  return {&tensor, matrix * shape[-2] * shape[-1] + column, shape[-1], shape[-2]};
}

std::string entry(std::string_view name, Index row, Index column) {
  return fmt::format("{}[{}, {}]", name, row, column);
}

std::string factor(const Line& line, Index i, int digits) {
  return in_parentheses(significant_text(*line.tensor, line.index(i), digits));
}

std::string factor(double value, int digits) {
  return in_parentheses(significant_text(value, digits));
}

std::string sum_text(const std::vector<std::string>& terms) { return joined(terms, " + "); }

std::string list_text(const std::vector<std::string>& items) { return joined(items, ", "); }

std::vector<Equation> product_equation(std::string left, std::string symbols, const Line& a,
                                       const Line& b, std::optional<double> bias, double result,
                                       int digits) {
  if (a.count != b.count) return {};
  std::vector<std::string> terms;
  double sum = bias.value_or(0), magnitude = std::abs(sum);
  for (Index i = 0; i < a.count; ++i) {
    if (a.at(i) == 0) continue;
    const double product = a.at(i) * b.at(i);
    sum += product;
    magnitude += std::abs(product);
    terms.push_back(factor(a, i, digits) + "*" + factor(b, i, digits));
  }
  // As far apart as 16-bit rounding can bring them.
  constexpr double kTolerance = 0.01;
  if (!(std::abs(sum - result) <= kTolerance * magnitude)) return {};
  if (terms.empty()) terms.emplace_back("0");
  std::string worked = sum_text(terms);
  if (bias) worked += " + " + factor(*bias, digits);
  return {
      {std::move(left), {std::move(symbols), std::move(worked), significant_text(result, digits)}}};
}

}  // namespace attnlab
