#pragma once

#include <cstdint>
#include <optional>
#include <span>
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
  // measured from. One offset a batch entry, or one for all; any Index, however large. 0 unless
  // set. Throws InputError (field "offset") when the count is wrong.
  void set_offset(Index offset);
  void set_offsets(std::vector<Index> offsets);
  // Query i sees keys j <= i + offset.
  void set_causal();
  // Query i sees keys i + offset - left <= j <= i + offset + right; -1 is unbounded. Self is not
  // counted: left = 2 shows self and two keys before it. Throws InputError (field "window_left" or
  // "window_right") below -1.
  void set_window(Index left, Index right);
  // Batch entry b has keys [0, lengths[b]); one length a batch entry, or one for all. Throws
  // InputError (field "key_lengths") when the count is wrong or a length is outside [0, m].
  void set_key_lengths(std::vector<Index> lengths);
  // True may attend. Broadcast to [batch, heads, n, m] by NumPy's rules, except that a last axis
  // of 2..m-1 is padded with false. Throws InputError (field "mask") when it does not fit.
  void set_boolean(Tensor<bool> may_attend);
  // Added to the scores after scaling and softcap. -infinity masks: it selects like false. Every
  // other value is arithmetic, -1e9, NaN and +infinity too, whatever it does to the row. Shapes as
  // for set_boolean, padded with -infinity.
  void set_additive(AnyTensor bias);
  // Attention with linear biases (Press et al., 2022): -slopes[h] |i + offset - j| is added to the
  // scores of head h, before the additive mask is; it hides nothing. One slope a head, see
  // alibi_slopes. Throws InputError (field "alibi") when the count is wrong or a slope is not from
  // 0 to 1e18, which no distance takes beyond float32.
  void set_alibi(std::vector<double> slopes);

  // This mask with `count` keys before its own that every query sees, whatever the parts say: they
  // are about the keys behind, where they stood. A window that leaves keys out in between is then
  // elementwise.
  Mask with_open_keys(Index count) const;

  Index batch() const { return batch_; }
  Index heads() const { return heads_; }
  Index queries() const { return queries_; }
  Index keys() const { return open_ + keys_; }
  // How many of them, the first, every query sees.
  Index open_keys() const { return open_; }
  // Where query 0 of each batch entry stands among the keys that are not open, or that of all.
  const std::vector<Index>& offsets() const { return offsets_; }
  bool has_additive() const { return additive_.has_value(); }
  bool has_alibi() const { return !slopes_.empty(); }
  // Whether keys within key_range may be hidden.
  bool has_elementwise() const {
    return boolean_.has_value() || additive_.has_value() || (open_ > 0 && left_ >= 0);
  }

  // The keys that causal mask, window and lengths leave query i of batch entry b; within [0, m].
  // What is hidden of them all the same, where has_elementwise, may_attend and read_row tell.
  KeyRange key_range(Index b, Index i) const;
  bool may_attend(Index b, Index h, Index i, Index j) const;
  // What is added to a score, 0 without an additive mask and slopes; in float32 or float64 as T.
  // Only -infinity gives -infinity: finite values beyond T are its largest.
  template <class T>
  T bias(Index b, Index h, Index i, Index j) const;
  // Adds the linear biases, which there are, to the scores of a row, those of `keys`; none to open
  // keys.
  template <class T>
  void add_alibi(Index b, Index h, Index i, KeyRange keys, std::span<T> scores) const;
  // What they are made of, for who adds them in vectors: the slope of a head, and the key that
  // query i stands at, counted with the open ones, or the bound of Index that it lies beyond.
  double alibi_slope(Index h) const { return slopes_[static_cast<std::size_t>(h)]; }
  Index position(Index b, Index i) const;
  // What is elementwise of a whole row, for the keys in `keys`: seen[x] is 1 when key
  // keys.first + x is not hidden by it, 0 otherwise, and bias[x] is its bias. Both spans have
  // keys.last - keys.first elements; `bias` is left alone without an additive mask.
  template <class T>
  void read_row(Index b, Index h, Index i, KeyRange keys, std::span<std::uint8_t> seen,
                std::span<T> bias) const;

 private:
  void check_broadcast(const Shape& shape) const;
  // key_range of the keys behind the open ones, counted from there.
  KeyRange masked_range(Index b, Index i) const;

  Index batch_, heads_, queries_;
  Index open_ = 0;  // keys before those that the parts are about
  Index keys_;      // those
  std::vector<Index> offsets_{0};
  bool causal_ = false;
  Index left_ = -1, right_ = -1;
  std::vector<Index> lengths_;
  std::optional<Tensor<bool>> boolean_;
  std::optional<AnyTensor> additive_;
  std::vector<double> slopes_;  // of the linear biases; none without
};

}  // namespace attnlab
