#include "attnlab/experiments/candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace attnlab {
namespace {

// The rows that are apart, as they come.
class Apart {
 public:
  explicit Apart(const Shape& output) : heads_(output[1]), queries_(output[2]) {
    batches_.resize(static_cast<std::size_t>(output[0]));
    in_head_.resize(static_cast<std::size_t>(heads_));
  }

  void count_row() { ++departure_.rows; }
  void add(Index row, Index column) {
    const Index i = row % queries_, head = row / queries_ % heads_, b = row / queries_ / heads_;
    if (departure_.rows_apart++ == 0 || row < first_) {
      first_ = row;
      departure_.batch = b;
      departure_.head = head;
      departure_.row = i;
      departure_.column = column;
    }
    departure_.first_row = departure_.rows_apart == 1 ? i : std::min(departure_.first_row, i);
    batches_[static_cast<std::size_t>(b)] = true;
    in_head_[static_cast<std::size_t>(head)] = true;
  }
  std::optional<Departure> departure() const {
    if (departure_.rows_apart == 0) return std::nullopt;
    Departure result = departure_;
    if (alone(batches_)) result.only_batch = result.batch;
    if (alone(in_head_)) result.only_head = result.head;
    return result;
  }

 private:
  static bool alone(const std::vector<bool>& apart) {
    return apart.size() > 1 && std::count(apart.begin(), apart.end(), true) == 1;
  }

  Index heads_, queries_, first_ = 0;
  std::vector<bool> batches_, in_head_;
  Departure departure_;
};

}  // namespace

std::optional<Index> Departure::tile() const {
  constexpr std::array<Index, 5> kTiles = {256, 128, 64, 32, 16};
  if (first_row == 0) return std::nullopt;
  for (const Index tile : kTiles) {
    if (first_row % tile == 0) return tile;
  }
  return std::nullopt;
}

std::string Departure::text() const {
  std::string text =
      fmt::format("first at batch {}, head {}, row {}, column {}; {} of {} rows are apart", batch,
                  head, row, column, rows_apart, rows);
  if (only_batch) text += fmt::format(", all of batch {}", *only_batch);
  if (only_head) text += fmt::format(", all of head {}", *only_head);
  if (tile()) {
    text += fmt::format(", none before row {}: a tile boundary of {}?", first_row, *tile());
  }
  return text;
}

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

Difference Candidate::difference(const AttentionVariant& variant, std::span<const RowBlock> blocks,
                                 const Tensor<double>& asked) const {
  Difference result;
  double norm = 0;
  Apart apart(shape());
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

bool Candidate::equals(const AttentionVariant& variant, const RowBlock& first) const {
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
