#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attnlab/core/random.h"
#include "attnlab/stats/distributions.h"

namespace attnlab {

// Draws the vectors of the rows of one point: a query of each row, and n keys (or values) of each
// row or of each block of rows. Every vector is a function of the seed, the point and its number.
class RowSampler {
 public:
  RowSampler(const EntryLaw& law, Index keys, std::uint64_t seed, Index point);

  // The query [d] of row `trial`.
  void query(std::uint64_t trial, std::span<float> q) const;
  // The queries [.., d] of the rows from `trial` on.
  void queries(std::uint64_t trial, std::size_t d, std::span<float> q) const;
  // Keys, or values, [.., d] from number `first` on of the keys numbered `set`.
  void keys(std::uint64_t set, std::size_t first, std::size_t d, std::span<float> k) const;
  void values(std::uint64_t set, std::size_t first, std::size_t d, std::span<float> v) const;
  // A standard normal cotangent [d] of the output of row `trial`.
  void cotangent(std::uint64_t trial, std::span<float> grad_output) const;
  // Independent standard normal logits [n] of row `trial`.
  void logits(std::uint64_t trial, std::span<float> z) const;

 private:
  EntryLaw law_;
  std::uint64_t keys_;
  std::uint64_t seed_;
  std::uint64_t point_;
};

}  // namespace attnlab
