#include "attnlab/experiments/departure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace attnlab {
namespace {

bool alone(const std::vector<bool>& apart) {
  return apart.size() > 1 && std::count(apart.begin(), apart.end(), true) == 1;
}

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

DepartureSearch::DepartureSearch(const Shape& output) : heads_(output[1]), queries_(output[2]) {
  batches_.resize(static_cast<std::size_t>(output[0]));
  in_head_.resize(static_cast<std::size_t>(heads_));
}

void DepartureSearch::add(Index row, Index column) {
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

std::optional<Departure> DepartureSearch::departure() const {
  if (departure_.rows_apart == 0) return std::nullopt;
  Departure result = departure_;
  if (alone(batches_)) result.only_batch = result.batch;
  if (alone(in_head_)) result.only_head = result.head;
  return result;
}

}  // namespace attnlab
