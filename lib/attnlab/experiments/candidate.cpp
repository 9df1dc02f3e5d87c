#include "attnlab/experiments/candidate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace attnlab {

double Difference::rms() const {
  return elements == 0 ? 0 : std::sqrt(squares / static_cast<double>(elements));
}

Candidate::Candidate(Tensor<double> output, double tolerance)
    : output_(std::move(output)), tolerance_(tolerance) {}

std::span<const double> Candidate::row(Index row) const {
  const auto d_v = static_cast<std::size_t>(output_.shape()[3]);
  return output_.values().subspan(static_cast<std::size_t>(row) * d_v, d_v);
}

double Candidate::distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double distance = std::abs(a - b);
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

Difference Candidate::difference(const AttentionVariant& variant,
                                 std::span<const QueryBlock> blocks,
                                 const Tensor<double>& asked) const {
  Difference result;
  double norm = 0;
  DepartureSearch apart(shape());
  visit_rows(variant, blocks, [&](Index index, std::span<const double> values) {
    const std::span<const double> got = row(index);
    const double* wanted = asked.data() + index * shape()[3];
    std::optional<Index> column;
    for (std::size_t x = 0; x < values.size(); ++x) {
      const double error = distance(got[x], values[x]);
      if (error > result.max_abs_error) {
        result.max_abs_error = error;
        result.worst_row = index;
      }
      if (error > tolerance_ && !column) column = static_cast<Index>(x);
      result.squares += error * error;
      if (std::isfinite(values[x])) norm += values[x] * values[x];
      result.from_asked = std::max(result.from_asked, distance(values[x], wanted[x]));
      ++result.elements;
    }
    apart.count_row();
    if (column) apart.add(index, *column);
    return true;
  });
  if (norm > 0) result.relative_norm = std::sqrt(result.squares / norm);
  result.departure = apart.departure();
  return result;
}

bool Candidate::equals(const AttentionVariant& variant, const QueryBlock& first) const {
  const auto agrees = [&](Index index, std::span<const double> values) {
    const std::span<const double> got = row(index);
    return std::equal(got.begin(), got.end(), values.begin(),
                      [this](double a, double b) { return !(distance(a, b) > tolerance_); });
  };
  // Rows of another place in the output are not where the first were looked for.
  const bool in_place = variant.output_place == OutputPlace::same;
  return (!in_place || visit_rows(variant, {&first, 1}, agrees)) &&
         visit_rows(variant, row_blocks(variant), agrees);
}

}  // namespace attnlab
