// What the mask, and dropout, do to tiles of transposed scores [keys, queries]. Included once for
// every target, see hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_BACKWARD_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_BACKWARD_MASK_INL_H_
#undef ATTNLAB_KERNEL_BACKWARD_MASK_INL_H_
#else
#define ATTNLAB_KERNEL_BACKWARD_MASK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "attnlab/attention/kernel/backward_columns-inl.h"
#include "attnlab/attention/kernel/backward_tiled.h"
#include "attnlab/attention/kernel/dropout.h"
#include "attnlab/attention/kernel/row_keys.h"
#include "attnlab/attention/kernel/softcap.h"
#include "attnlab/attention/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

// Keys a tile; a multiple of kRows. With kBackwardRows queries a tile of float32 weights takes
// 24 KB.
inline constexpr Index kBackwardKeys = 96;

// The mask over one block of queries.
template <class T>
class BackwardMask {
 public:
  // `left_out`: of the rows of the block. Those that see what is not finite in the inputs are found
  // here.
  BackwardMask(const BackwardCall<T>& call, const RowBlock& block, Index key_matrix,
               LeftOut* left_out)
      : call_(call),
        block_(block),
        query_matrix_(block.b * call.mask.heads() + block.h),
        left_out_(left_out),
        row_keys_(call.mask, block) {
    find_non_finite(call.q.non_finite_rows(query_matrix_));
    find_non_finite(call.grad_output.non_finite_rows(query_matrix_));
    find_non_finite_keys(call.k.non_finite_rows(key_matrix), LeftOut::all);
    find_non_finite_keys(call.v.non_finite_rows(key_matrix), LeftOut::grad_scores);
  }

  // The keys that some row of the block may see.
  KeyRange keys() const { return row_keys_.all(); }
  LeftOut left_out(Index r) const { return left_out_[r]; }
  void leave_out(Index r, LeftOut what) { left_out_[r] = std::max(left_out_[r], what); }

  // Adds the biases, and sets the scores of masked keys to -infinity.
  void hide(KeyRange tile, View<T> scores) {
    const Index count = tile.last - tile.first;
    if (call_.mask.has_alibi()) add_alibi(tile.first, {count, scores.stride}, scores);
    bool hides = false;
    first_.fill(T(0));
    last_.fill(static_cast<T>(count));
    for (Index r = 0; r < block_.rows; ++r) {
      const KeyRange seen = seen_of(r, tile);
      first_[at(r)] = static_cast<T>(seen.first - tile.first);
      last_[at(r)] = static_cast<T>(seen.last - tile.first);
      hides = hides || seen.last - seen.first < count;
      if (call_.mask.has_elementwise()) hide_elements(r, seen, scores, seen.first - tile.first);
    }
    if (hides) hide_outside<T>(scores, {count, scores.stride}, first_.data(), last_.data());
  }

  // Dropout of a tile of weights, or of their gradients.
  void drop(KeyRange tile, View<T> weights) {
    if (call_.settings.dropout == 0) return;
    const Index count = tile.last - tile.first;
    for (Index r = 0; r < block_.rows; ++r) {
      for (Index j = 0; j < count; ++j) row_[at(j)] = weights.row(j)[r];
      drop_row(r, tile.first, std::span(row_).first(at(count)));
      for (Index j = 0; j < count; ++j) weights.row(j)[r] = row_[at(j)];
    }
  }
  // The same of one row, from key `first_key` on.
  void drop_row(Index r, Index first_key, std::span<T> row) const {
    if (call_.settings.dropout == 0) return;
    drop_weights<T>(row, first_key, query_matrix_ * call_.mask.queries() + block_.first + r,
                    call_.settings.dropout, call_.settings.seed);
  }

 private:
  static constexpr std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  void find_non_finite(const std::vector<Index>& queries) {
    for (const Index i : queries) {
      const Index r = i - block_.first;
      if (r >= 0 && r < block_.rows) leave_out(r, LeftOut::all);
    }
  }
  void find_non_finite_keys(const std::vector<Index>& keys, LeftOut what) {
    if (keys.empty()) return;
    for (Index r = 0; r < block_.rows; ++r) {
      const KeyRange range = row_keys_.of(r);
      const auto first = std::lower_bound(keys.begin(), keys.end(), range.first);
      const auto last = std::lower_bound(first, keys.end(), range.last);
      const bool sees = std::any_of(first, last, [&](Index j) {
        return !call_.mask.has_elementwise() ||
               call_.mask.may_attend(block_.b, block_.h, block_.first + r, j);
      });
      if (sees) leave_out(r, what);
    }
  }

  // Keys of a tile in the range of row r; empty ones begin in the tile too.
  KeyRange seen_of(Index r, KeyRange tile) const {
    const KeyRange range = row_keys_.of(r);
    return {std::clamp(range.first, tile.first, tile.last),
            std::clamp(range.last, tile.first, tile.last)};
  }

  // Linear biases of a tile, but for the open keys, which stand nowhere.
  void add_alibi(Index first_key, TileSize size, View<T> scores) {
    const Index open = std::clamp<Index>(call_.mask.open_keys() - first_key, 0, size.keys);
    self_.fill(T(0));
    for (Index r = 0; r < block_.rows; ++r) {
      const auto self = static_cast<double>(call_.mask.position(block_.b, block_.first + r));
      self_[at(r)] = static_cast<T>(self - static_cast<double>(first_key + open));
    }
    add_linear_biases<T>(scores.from_row(open), {size.keys - open, size.queries}, self_.data(),
                         static_cast<T>(call_.mask.alibi_slope(block_.h)));
  }

  // Boolean and additive masks of row r, for keys that stand in the scores from row `first` on.
  void hide_elements(Index r, KeyRange keys, View<T> scores, Index first) {
    const auto count = at(keys.last - keys.first);
    if (count == 0) return;
    const bool adds = call_.mask.has_additive();
    const auto seen = std::span(seen_).first(count);
    const auto bias = std::span(row_).first(adds ? count : 0);
    call_.mask.template read_row<T>(block_.b, block_.h, block_.first + r, keys, seen, bias);
    for (std::size_t x = 0; x < count; ++x) {
      T& score = scores.row(first + static_cast<Index>(x))[r];
      if (adds) score += bias[x];
      if (seen[x] == 0) score = -std::numeric_limits<T>::infinity();
    }
  }

  const BackwardCall<T>& call_;
  const RowBlock& block_;
  Index query_matrix_;
  LeftOut* left_out_;
  RowKeys row_keys_;
  alignas(64) std::array<T, kMostBackwardRows> first_, last_, self_;
  std::array<T, kBackwardKeys> row_;
  std::array<std::uint8_t, kBackwardKeys> seen_{};
};

// scores = C tanh(scores / C) of the block's queries, and what its derivative is.
template <class T>
void cap_columns(View<T> scores, View<T> slopes, TileSize size, T cap) {
  for (Index j = 0; j < size.keys; ++j) {
    for (Index i = 0; i < size.queries; ++i) {
      T& score = scores.row(j)[i];
      slopes.row(j)[i] = softcap_slope(score, cap);
      score = softcap(score, cap);
    }
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
