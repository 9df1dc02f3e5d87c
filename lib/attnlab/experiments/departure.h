#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Where what was computed leaves what it is held against, over [batch, heads, n, d_v].
struct Departure {
  Index batch = 0, head = 0, row = 0, column = 0;  // of the first element apart
  Index first_row = 0;                             // before it, no head is apart
  Index rows_apart = 0, rows = 0;                  // of [batch, heads, n]
  std::optional<Index> only_batch, only_head;      // where one of several alone is apart

  // The largest of 256, 128, 64, 32 and 16 that first_row is a positive multiple of.
  std::optional<Index> tile() const;
  std::string text() const;
};

// The rows that are apart, as they come.
class DepartureSearch {
 public:
  // output [batch, heads, n, d]
  explicit DepartureSearch(const Shape& output);

  void count_row() { ++departure_.rows; }
  // That row `row` of [batch, heads, n] is apart, first in `column`.
  void add(Index row, Index column);
  // Nothing where no row is apart.
  std::optional<Departure> departure() const;

 private:
  Index heads_, queries_, first_ = 0;
  std::vector<bool> batches_, in_head_;
  Departure departure_;
};

}  // namespace attnlab
