#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attnlab {

// Counts small products of numbers that are not negative, without sorting them.
class ProductCount {
 public:
  // How many pairs (i, j), i not j, have numbers[i] numbers[j], as float64 rounds it, below the
  // bound.
  double below(std::span<const double> numbers, double bound);

 private:
  void fill_bins(std::span<const double> numbers);
  std::size_t bin_of(double number) const;

  // The numbers by bins of equal uppermost bits, bin b from starts_[b] to starts_[b + 1]. Bin 0 and
  // the last are empty: what is below and above all numbers.
  std::vector<double> numbers_;
  std::vector<std::size_t> starts_;
  int shift_ = 0;
  std::uint64_t first_ = 0, bins_ = 0;
};

}  // namespace attnlab
