#include "attnlab/experiments/product_count.h"

#include <algorithm>
#include <bit>

namespace attnlab {
namespace {

std::uint64_t bits_of(double number) { return std::bit_cast<std::uint64_t>(number); }

}  // namespace

// The bits of positive numbers are in the order of the numbers.
std::size_t ProductCount::bin_of(double number) const {
  const std::uint64_t at = bits_of(number) >> shift_;
  return at < first_ ? 0 : std::min(at - first_ + 1, bins_ - 1);
}

void ProductCount::fill_bins(std::span<const double> numbers) {
  const auto ends = std::minmax_element(numbers.begin(), numbers.end());
  const std::uint64_t least = bits_of(*ends.first), most = bits_of(*ends.second);
  // 16 bins an octave, or fewer where there are not as many numbers.
  shift_ = 48;
  const auto range = [&] { return (most >> shift_) - (least >> shift_); };
  while (range() > 2 * numbers.size()) ++shift_;
  first_ = least >> shift_;
  bins_ = range() + 3;
  starts_.assign(bins_ + 2, 0);
  for (const double number : numbers) ++starts_[bin_of(number) + 2];
  for (std::size_t b = 2; b < starts_.size(); ++b) starts_[b] += starts_[b - 1];
  numbers_.resize(numbers.size());
  // starts_[b + 1] moves from where bin b begins to where it ends.
  for (const double number : numbers) numbers_[starts_[bin_of(number) + 1]++] = number;
}

double ProductCount::below(std::span<const double> numbers, double bound) {
  if (!(bound > 0)) return 0;
  constexpr std::size_t kFew = 16;
  std::size_t count = 0;
  if (numbers.size() <= kFew) {
    for (std::size_t i = 1; i < numbers.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) count += numbers[i] * numbers[j] < bound ? 2 : 0;
    }
    return static_cast<double>(count);
  }
  fill_bins(numbers);
  for (const double number : numbers) {
    // Products change sides in the bin of the quotient or, by their rounding, in one beside it.
    const std::size_t middle = std::clamp<std::size_t>(bin_of(bound / number), 1, bins_ - 2);
    const std::size_t from = starts_[middle - 1], to = starts_[middle + 2];
    count += from;
    for (std::size_t i = from; i < to; ++i) count += numbers_[i] * number < bound ? 1 : 0;
    // That counts it with itself.
    count -= number * number < bound ? 1 : 0;
  }
  return static_cast<double>(count);
}

}  // namespace attnlab
