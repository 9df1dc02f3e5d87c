#include "attnlab/attention/kernel/masked_rows.h"

#include <limits>

#include "attnlab/attention/kernel/dropout.h"
#include "attnlab/attention/kernel/masked_softmax.h"

namespace attnlab {
template <class T>
MaskedRows<T>::MaskedRows(const Mask& mask, const RowBlock& block)
    : mask_(mask),
      block_(block),
      row_keys_(mask, block),
      seen_(static_cast<std::size_t>(key_count())),
      bias_(mask.has_additive() ? seen_.size() : 0) {}

template <class T>
SeenKeys MaskedRows<T>::mask(Index r, std::span<T> scores) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  SeenKeys keys;
  keys.query = block_.first + r;
  const KeyRange range = row_keys_.of(r);
  if (!range.empty()) {
    keys.first = static_cast<std::size_t>(range.first - this->keys().first);
    keys.count = static_cast<std::size_t>(range.last - range.first);
  }
  if (mask_.has_alibi()) {
    mask_.add_alibi(block_.b, block_.h, keys.query, range, keys.part(scores));
  }
  if (mask_.has_elementwise()) {
    const std::span<std::uint8_t> seen = std::span(seen_).first(keys.count);
    const std::span<T> bias = std::span(bias_).first(std::min(bias_.size(), keys.count));
    const std::span<T> row = keys.part(scores);
    mask_.read_row(block_.b, block_.h, keys.query, range, seen, bias);
    for (std::size_t x = 0; x < bias.size(); ++x) row[x] += bias[x];
    for (std::size_t x = 0; x < row.size(); ++x) row[x] = seen[x] != 0 ? row[x] : kHidden;
    keys.seen = seen;
  }
  keys.fill_around(scores, kHidden);
  return keys;
}

template <class T>
void MaskedRows<T>::weigh(const SeenKeys& keys, std::span<T> row) const {
  masked_softmax(keys.part(row), keys.seen);
  keys.fill_around(row, T(0));
}

template <class T>
void MaskedRows<T>::drop(const SeenKeys& keys, std::span<T> row,
                         const AttentionSettings& settings) const {
  if (settings.dropout == 0) return;
  const Index row_index = (block_.b * mask_.heads() + block_.h) * mask_.queries() + keys.query;
  drop_weights(keys.part(row), this->keys().first + static_cast<Index>(keys.first), row_index,
               settings.dropout, settings.seed);
}

template class MaskedRows<float>;
template class MaskedRows<double>;

}  // namespace attnlab
