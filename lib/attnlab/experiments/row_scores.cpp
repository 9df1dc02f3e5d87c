#include "attnlab/experiments/row_scores.h"

#include <algorithm>
#include <cmath>

#include "attnlab/core/dot_matrix.h"
#include "attnlab/core/dot_rows.h"
#include "attnlab/stats/monte_carlo.h"

namespace attnlab {
namespace {

// Rows at a time.
std::size_t rows_of(const RowScores::Shape& shape) {
  if (!shape.shared) return 1;
  constexpr std::size_t kNumbers = 1 << 18, kFew = 4;
  return std::clamp<std::size_t>(kNumbers / std::max(shape.n, shape.d), kFew, kBlockTrials);
}

// Keys that stay in the first cache from the draw to the dot product.
std::size_t keys_at_once(std::size_t d) {
  constexpr std::size_t kEntries = 4096;
  return kEntries / std::min(std::max<std::size_t>(1, d), kEntries);
}

// Keys in memory.
std::size_t keys_of(const RowScores::Shape& shape) {
  return shape.shared ? shape.n : std::min(shape.n, keys_at_once(shape.d));
}

}  // namespace

// Calls f(first, count) for the n keys, `most` at a time, until the run is cancelled.
template <class F>
void RowScores::for_each_chunk(std::size_t most, const F& f) const {
  for (std::size_t first = 0; first < shape_.n && !watch_.cancelled(); first += most) {
    f(first, std::min(most, shape_.n - first));
  }
}

RowScores::RowScores(const Shape& shape, const RowSampler& sampler, std::uint64_t block,
                     const Watch& watch)
    : shape_(shape),
      sampler_(sampler),
      watch_(watch),
      q_(rows_of(shape) * shape.d),
      k_(keys_of(shape) * shape.d),
      wide_q_(shape.shared ? q_.size() : 0),
      scores_(rows_of(shape) * shape.n),
      key_lengths_(shape.lengths ? shape.n : 0) {
  if (!shape.shared) return;
  for_each_chunk(keys_at_once(shape.d), [&](std::size_t j, std::size_t count) {
    const auto k = k_.part(j * shape_.d, count * shape_.d);
    sampler_.keys(block, j, shape_.d, k);
    measure_keys(k, j);
  });
}

std::uint64_t RowScores::bytes(const Shape& shape) {
  const std::uint64_t rows = rows_of(shape), n = shape.n, d = shape.d;
  return keys_of(shape) * d * sizeof(float) + n * (rows + 1) * sizeof(double) +
         rows * d * (sizeof(float) + sizeof(double));
}

std::size_t RowScores::draw(std::uint64_t trial, std::uint64_t last) {
  if (!shape_.shared) {
    draw_own(trial);
    return 1;
  }
  const auto rows =
      static_cast<std::size_t>(std::min<std::uint64_t>(scores_.size() / shape_.n, last - trial));
  draw_shared(trial, rows);
  return rows;
}

void RowScores::draw_own(std::uint64_t trial) {
  sampler_.query(trial, q_.all());
  for_each_chunk(keys_at_once(shape_.d), [&](std::size_t j, std::size_t count) {
    const auto k = k_.part(0, count * shape_.d);
    sampler_.keys(trial, j, shape_.d, k);
    dot_with_rows(q_.all(), k, scores_.part(j, count));
    measure_keys(k, j);
  });
}

void RowScores::draw_shared(std::uint64_t trial, std::size_t rows) {
  const auto q = q_.part(0, rows * shape_.d);
  sampler_.queries(trial, shape_.d, q);
  const auto wide_q = wide_q_.part(0, q.size());
  std::ranges::copy(q, wide_q.begin());
  // Not longer at a time than a user waits who has cancelled.
  constexpr std::size_t kProducts = std::size_t{1} << 26, kLeast = 64;
  for_each_chunk(std::max(kLeast, kProducts / q.size()), [&](std::size_t j, std::size_t count) {
    dot_matrix(wide_q, k_.part(j * shape_.d, count * shape_.d), shape_.d, scores_.all().subspan(j),
               shape_.n);
  });
}

void RowScores::measure_keys(std::span<const float> k, std::size_t first) {
  if (!shape_.lengths) return;
  const auto lengths = key_lengths_.part(first, k.size() / shape_.d);
  dot_of_rows(k, k, shape_.d, lengths);
  for (double& length : lengths) length = std::sqrt(length);
}

}  // namespace attnlab
