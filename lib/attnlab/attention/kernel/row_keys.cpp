#include "attnlab/attention/kernel/row_keys.h"

#include <algorithm>

namespace attnlab {

RowKeys::RowKeys(const Mask& mask, const RowBlock& block)
    : ranges_(static_cast<std::size_t>(block.rows)) {
  for (Index r = 0; r < block.rows; ++r) {
    const KeyRange range = mask.key_range(block.b, block.first + r);
    if (!range.empty()) ranges_[static_cast<std::size_t>(r)] = range;
  }
  all_ = of_rows(0, block.rows);
}

KeyRange RowKeys::of_rows(Index first, Index rows) const {
  KeyRange all;
  for (Index r = first; r < first + rows; ++r) {
    const KeyRange range = of(r);
    if (range.empty()) continue;
    all = all.empty() ? range
                      : KeyRange{std::min(all.first, range.first), std::max(all.last, range.last)};
  }
  return all;
}

}  // namespace attnlab
