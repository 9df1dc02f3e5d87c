#pragma once

#include <optional>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Keys [first, last).
struct KeyRange {
  Index first = 0;
  Index last = 0;

  bool empty() const { return first >= last; }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// Which keys each query may attend to, and what is added to the scores of those. Every part is
// composed here, before any score is touched: a key is seen when all parts allow it. Causal masks,
// windows and key lengths are kept as numbers, never as an [n, m] array, and boolean and additive
// masks as they were given, broadcast on access.
//
// Shape of what is masked: [batch, heads, n, m], n queries and m keys.
class Mask {
 public:
  Mask(Index batch, Index heads, Index queries, Index keys);

  // Query i stands at key position i + offset: the diagonal that causal masks and windows are
  // measured from. One offset a batch entry, or one for all. 0 unless set.
  void set_offset(Index offset);
  void set_offsets(std::vector<Index> offsets);
  // Query i sees keys j <= i + offset.
  void set_causal();
  // Query i sees keys i + offset - left <= j <= i + offset + right; -1 is unbounded. Self is not
  // counted: left = 2 shows self and two keys before it.
  void set_window(Index left, Index right);
  // Batch entry b has keys [0, lengths[b]); one length a batch entry, or one for all. Throws
  // InputError (field "key_lengths") when the count is wrong or a length is outside [0, m].
  void set_key_lengths(std::vector<Index> lengths);
  // True may attend. Broadcast to [batch, heads, n, m] by NumPy's rules, except that a last axis
  // of 2..m-1 is padded with false. Throws InputError (field "mask") when it does not fit.
  void set_boolean(Tensor<bool> may_attend);
  // Added to the scores after scaling and softcap. -infinity masks: it selects like false. Shapes
  // as for set_boolean, padded with -infinity.
  void set_additive(AnyTensor bias);

  Index batch() const { return batch_; }
  Index heads() const { return heads_; }
  Index queries() const { return queries_; }
  Index keys() const { return keys_; }
  bool has_additive() const { return additive_.has_value(); }
  // No key of this range is hidden by a boolean or additive mask.
  bool has_elementwise() const { return boolean_.has_value() || additive_.has_value(); }

  // The keys that causal mask, window and lengths leave query i of batch entry b. What a boolean
  // or additive mask hides within it may_attend tells.
  KeyRange key_range(Index b, Index i) const;
  bool may_attend(Index b, Index h, Index i, Index j) const;
  // What is added to a score, 0 without an additive mask; in float32 or float64 as T.
  template <class T>
  T bias(Index b, Index h, Index i, Index j) const;

 private:
  Index batch_, heads_, queries_, keys_;
  std::vector<Index> offsets_{0};
  bool causal_ = false;
  Index left_ = -1, right_ = -1;
  std::vector<Index> lengths_;
  std::optional<Tensor<bool>> boolean_;
  std::optional<AnyTensor> additive_;
};

}  // namespace attnlab
