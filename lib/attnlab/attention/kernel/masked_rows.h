#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attnlab/attention/kernel/row_block.h"
#include "attnlab/attention/kernel/row_keys.h"
#include "attnlab/attention/mask.h"
#include "attnlab/attention/scaled_dot_product.h"

namespace attnlab {

// What the mask leaves of one row of a block.
struct SeenKeys {
  Index query = 0;
  std::size_t first = 0;  // its range of keys, counted from the first key of the block
  std::size_t count = 0;
  std::span<const std::uint8_t> seen;  // 1 for each key of the range that is seen; empty: all are

  bool sees(std::size_t x) const { return seen.empty() || seen[x] != 0; }
  bool any() const {
    return seen.empty() ? count > 0 : std::find(seen.begin(), seen.end(), 1) != seen.end();
  }
  // The range's part of a row that holds the keys of the block.
  template <class T>
  std::span<T> part(std::span<T> row) const {
    return row.subspan(first, count);
  }
  // Sets what lies beside the range.
  template <class T>
  void fill_around(std::span<T> row, T value) const {
    std::fill_n(row.begin(), first, value);
    std::fill(row.begin() + static_cast<std::ptrdiff_t>(first + count), row.end(), value);
  }
};

// The mask over a block of queries. Rows hold the keys of the block, keys(), only.
template <class T>
class MaskedRows {
 public:
  MaskedRows(const Mask& mask, const RowBlock& block);

  // The keys that some row of the block may see; no product is needed beside them.
  KeyRange keys() const { return row_keys_.all(); }
  Index key_count() const { return keys().last - keys().first; }

  // Adds the biases to the scores of row r, and selects -infinity where a key is masked. The spans
  // returned hold until the next row is masked.
  SeenKeys mask(Index r, std::span<T> scores);
  // Masked scores become weights.
  void weigh(const SeenKeys& keys, std::span<T> row) const;
  // Dropout of a row, when the settings ask for it: what it does to the weights is what it does to
  // their gradient.
  void drop(const SeenKeys& keys, std::span<T> row, const AttentionSettings& settings) const;

 private:
  const Mask& mask_;
  const RowBlock& block_;
  RowKeys row_keys_;
  std::vector<std::uint8_t> seen_;  // of the row at hand
  std::vector<T> bias_;
};

}  // namespace attnlab
