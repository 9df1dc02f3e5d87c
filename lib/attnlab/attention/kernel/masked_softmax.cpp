#include "attnlab/attention/kernel/masked_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnlab {

template <class T>
void masked_softmax(std::span<T> row, std::span<const std::uint8_t> seen) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  const auto is_seen = [&](std::size_t j) { return seen.empty() || seen[j] != 0; };
  T max = kLowest;
  bool has_score = false;  // NaN is a score: it must not pass for an empty row
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (!is_seen(j)) continue;
    max = row[j] > max ? row[j] : max;
    has_score = has_score || row[j] != kLowest;
  }
  if (!has_score) {
    std::fill(row.begin(), row.end(), T(0));
    return;
  }
  // Subtract the row maximum first: exp overflows float32 above 88.7. The sum is kept in double,
  // since a float32 one drifts over long rows.
  double sum = 0;
  for (std::size_t j = 0; j < row.size(); ++j) {
    row[j] = is_seen(j) ? std::exp(row[j] - max) : T(0);
    sum += static_cast<double>(row[j]);
  }
  const T total = static_cast<T>(sum);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = is_seen(j) ? row[j] / total : T(0);
}

template void masked_softmax<float>(std::span<float>, std::span<const std::uint8_t>);
template void masked_softmax<double>(std::span<double>, std::span<const std::uint8_t>);

}  // namespace attnlab
