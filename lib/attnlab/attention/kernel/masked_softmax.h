#pragma once

#include <cstdint>
#include <span>

namespace attnlab {

// Replaces the scores of one row by its weights, exp(s_j - max s) / sum_k exp(s_k - max s) over the
// keys seen, and exactly 0 at the others, whatever their scores. seen[j] is 1 for a key seen, 0
// for one that is not; empty when all are. All 0 when no key is seen, or every score is -infinity.
// NaN or +infinity among the scores seen makes every weight seen NaN.
template <class T>
void masked_softmax(std::span<T> row, std::span<const std::uint8_t> seen);

}  // namespace attnlab
