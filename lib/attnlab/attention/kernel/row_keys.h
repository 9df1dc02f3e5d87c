#pragma once

#include <vector>

#include "attnlab/attention/kernel/row_block.h"
#include "attnlab/attention/mask.h"

namespace attnlab {

// The range of keys that each row of a block sees, or sees some of under a mask of elements. That
// of a row without any is empty and begins at 0.
class RowKeys {
 public:
  RowKeys(const Mask& mask, const RowBlock& block);

  KeyRange of(Index row) const { return ranges_[static_cast<std::size_t>(row)]; }
  // From the first key to the last that one of `rows` rows from `first` on sees.
  KeyRange of_rows(Index first, Index rows) const;
  // The same of the whole block.
  KeyRange all() const { return all_; }

 private:
  std::vector<KeyRange> ranges_;
  KeyRange all_;
};

}  // namespace attnlab
