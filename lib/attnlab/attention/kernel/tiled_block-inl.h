// One block of queries on its way through the tiles of its keys. Included once for every target,
// see hwy/foreach_target.h.
//
// Where the time goes, as measured with AVX2 on a Zen 3 at d_k 64 and n 512, where one head reaches
// .80 of the FMA peak: the two products alone would reach .95, the softmax between them takes most
// of the rest, packing K 1%. Powers of two instead of e brought 2.5 points; the maxima, compared
// while the scores are still in registers, and no clamp before the power 1 each. Tried without
// gain: several groups of queries a panel of K, Q packed, tiles of 128 and 512 keys, unrolling by
// hand, all maxima of a group before its powers, prefetch of Q, V and the output, the output
// divided by way of a reciprocal (the divider works beside the rest).
#if defined(ATTNLAB_KERNEL_TILED_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_TILED_BLOCK_INL_H_
#undef ATTNLAB_KERNEL_TILED_BLOCK_INL_H_
#else
#define ATTNLAB_KERNEL_TILED_BLOCK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "attnlab/attention/kernel/call.h"
#include "attnlab/attention/kernel/dropout.h"
#include "attnlab/attention/kernel/exp-inl.h"
#include "attnlab/attention/kernel/score_row-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"
#include "attnlab/attention/kernel/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Keys a tile; a multiple of two vectors. With kRows queries the scores take 6 KB of float32,
// which stay in the first cache.
inline constexpr Index kTileKeys = 256;
// From one row of scores to the next. Rows a power of two apart lie in the same banks of the first
// cache, and loads from them wait for each other: a third of the speed where all else is there.
inline constexpr Index kScoreStride = kTileKeys + 16;

template <class T>
class TiledBlock {
 public:
  TiledBlock(const KernelCall<T>& call, const RowBlock& block, AttentionResult<T>& result)
      : call_(call),
        block_(block),
        result_(result),
        query_matrix_(call.query_matrix(block.b, block.h)),
        key_matrix_(call.key_matrix(block.b, block.h)),
        depth_(call.q.shape()[3]),
        width_(call.v.shape()[3]),
        padded_width_(round_up(width_, kLanes<T>)),
        natural_(call.mask.has_additive() || call.mask.has_alibi() || call.settings.softcap),
        adjusts_(natural_ || call.mask.has_elementwise()),
        scale_(static_cast<T>(call.settings.scale * (natural_ ? 1 : std::numbers::log2e))) {
    find_keys();
    take_memory();
  }

  ZeroRows attend() {
    for (Index tile = keys_.first / kTileKeys * kTileKeys; tile < keys_.last; tile += kTileKeys) {
      attend_tile({tile, std::min(keys_.last, tile + kTileKeys)});
    }
    ZeroRows zero;
    for (Index r = 0; r < block_.rows; ++r) {
      if (!finish_row(r)) ++(rows_[r].sees_key ? zero.overflowed : zero.empty);
    }
    return zero;
  }

 private:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();

  // What is known of a query between tiles.
  struct Row {
    KeyRange keys;
    T max = kNone;  // of its scores so far
    bool sees_key = false;
    bool is_nan = false;
  };

  void find_keys() {
    keys_ = {call_.mask.keys(), 0};
    for (Index r = 0; r < block_.rows; ++r) {
      Row& row = rows_[r];
      row.keys = call_.mask.key_range(block_.b, block_.first + r);
      if (row.keys.empty()) {
        row.keys = {};
        continue;
      }
      row.sees_key = !call_.mask.has_elementwise();
      keys_ = {std::min(keys_.first, row.keys.first), std::max(keys_.last, row.keys.last)};
    }
    if (keys_.first >= keys_.last) keys_ = {};
  }

  void take_memory() {
    const bool wants_weights = result_.weights.has_value();
    const Index first_tile = keys_.first / kTileKeys;
    tiles_ = (keys_.last + kTileKeys - 1) / kTileKeys - first_tile;
    weights_stride_ = round_up(tiles_ * kTileKeys, kLanes<T>);
    packs_values_ = width_ != padded_width_;
    using W = Workspace;
    Workspace& memory = Workspace::mine();
    memory.reset(W::bytes_of<T>(kTileKeys * depth_) + W::bytes_of<T>(kRows * kScoreStride) +
                 W::bytes_of<T>(kRows * kLanes<T>) + W::bytes_of<T>(block_.rows * padded_width_) +
                 W::bytes_of<T>(block_.rows * kLanes<T>) +
                 W::bytes_of<T>(packs_values_ ? kTileKeys * padded_width_ : 0) +
                 W::bytes_of<T>(wants_weights ? block_.rows * (weights_stride_ + tiles_) : 0) +
                 W::bytes_of<T>(kTileKeys) + W::bytes_of<std::uint8_t>(kTileKeys));
    panels_ = memory.take<T>(kTileKeys * depth_);
    scores_ = {memory.take<T>(kRows * kScoreStride), kScoreStride};
    maxima_ = {memory.take<T>(kRows * kLanes<T>), kLanes<T>};
    output_ = {memory.take<T>(block_.rows * padded_width_), padded_width_};
    sums_ = {memory.take<T>(block_.rows * kLanes<T>), kLanes<T>};
    packed_values_ = memory.take<T>(packs_values_ ? kTileKeys * padded_width_ : 0);
    T* kept = memory.take<T>(wants_weights ? block_.rows * (weights_stride_ + tiles_) : 0);
    kept_weights_ = {kept, weights_stride_};
    kept_max_ = {kept + block_.rows * weights_stride_, tiles_};
    bias_ = memory.take<T>(kTileKeys);
    seen_ = memory.take<std::uint8_t>(kTileKeys);
    std::fill_n(sums_.data, block_.rows * kLanes<T>, T(0));
  }

  View<const T> queries(Index r) const {
    return {call_.q.data() + (query_matrix_ * call_.mask.queries() + block_.first + r) * depth_,
            depth_};
  }

  void attend_tile(KeyRange tile) {
    const Index count = tile.last - tile.first;
    const T* k = call_.k.data() + (key_matrix_ * call_.mask.keys() + tile.first) * depth_;
    pack_transposed<T>({k, depth_}, count, depth_, scale_, panels_);
    const View<const T> values = values_of(tile);
    for (Index r = 0; r < block_.rows; r += kRows) {
      const Index rows = std::min(kRows, block_.rows - r);
      // Keys of the tile that some row of the group sees.
      Index last = tile.first, first = tile.last;
      for (Index x = r; x < r + rows; ++x) {
        if (rows_[x].keys.empty()) continue;
        first = std::min(first, rows_[x].keys.first);
        last = std::max(last, rows_[x].keys.last);
      }
      last = std::min(last, tile.last);
      if (std::max(first, tile.first) >= last) continue;
      attend_group(r, rows, {tile.first, last}, values, first >= tile.first);
    }
  }

  // Scores of `rows` queries from r on with the keys, weights, and their share of the output, which
  // is what was not there before with the first keys.
  void attend_group(Index r, Index rows, KeyRange keys, View<const T> values, bool is_first) {
    const Index count = keys.last - keys.first;
    const Index columns = round_up(count, kLanes<T>);
    std::fill_n(maxima_.data, rows * kLanes<T>, kNone);
    multiply_rows<T>(rows, queries(r), {panels_, kPanel<T>}, kPanel<T> * depth_, depth_, columns,
                     scores_, StoreAndCompare<T>{maxima_.data});
    for (Index x = 0; x < rows; ++x) weigh_row(r + x, scores_.row(x), maxima_.row(x), keys);
    const View<const T> weights{scores_.data, scores_.stride};
    const View<T> output = output_.from_row(r);
    if (is_first) {
      multiply_rows<T>(rows, weights, values, kPanel<T>, count, padded_width_, output, Store{});
    } else {
      multiply_rows<T>(rows, weights, values, kPanel<T>, count, padded_width_, output, AddTo{});
    }
  }

  // Turns the scores of one row with the keys of a tile into weights that are relative to the
  // largest score so far, and the row's output and sum likewise. `maxima`: its largest scores, lane
  // by lane.
  void weigh_row(Index r, T* scores, const T* maxima, KeyRange keys) {
    Row& row = rows_[r];
    const Index count = keys.last - keys.first;
    const KeyRange seen{std::clamp<Index>(row.keys.first - keys.first, 0, count),
                        std::clamp<Index>(row.keys.last - keys.first, 0, count)};
    if (adjusts_) adjust_row(r, scores, keys, seen);
    std::fill_n(scores, seen.first, kNone);
    const Index columns = round_up(count, 2 * kLanes<T>);
    std::fill_n(scores + seen.last, columns - seen.last, kNone);
    // Beyond `count` the product has scores of 0.
    const bool knows_max = !adjusts_ && seen == KeyRange{0, count} && count % kLanes<T> == 0;
    const T max = knows_max ? largest_lane<T>(maxima) : largest<T>(scores, columns);
    if (max == kNone && has_nan(scores, count)) row.is_nan = true;
    const Index tile = keys.first / kTileKeys - keys_.first / kTileKeys;
    if (row.is_nan || max == kNone) {
      std::fill_n(scores, count, T(0));
      if (result_.weights) keep_weights(r, tile, scores, count, kNone);
      return;
    }
    if (max > row.max) {
      if (row.max != kNone) rescale(r, row.max - max);
      row.max = max;
    }
    row.is_nan = !(natural_ ? weights_of_row<T, Base::e>(scores, columns, row.max, sums_.row(r))
                            : weights_of_row<T, Base::two>(scores, columns, row.max, sums_.row(r)));
    if (result_.weights) keep_weights(r, tile, scores, count, row.max);
    if (call_.settings.dropout > 0) {
      drop_weights<T>({scores, static_cast<std::size_t>(count)}, keys.first,
                      query_matrix_ * call_.mask.queries() + block_.first + r,
                      call_.settings.dropout, call_.settings.seed);
    }
  }

  static bool has_nan(const T* scores, Index count) {
    return std::any_of(scores, scores + count, [](T score) { return std::isnan(score); });
  }

  void keep_weights(Index r, Index tile, const T* weights, Index count, T max) {
    std::copy_n(weights, count, kept_weights_.row(r) + tile * kTileKeys);
    kept_max_.row(r)[tile] = max;
  }

  // Softcap, linear biases and the masks that are given element by element.
  void adjust_row(Index r, T* scores, KeyRange keys, KeyRange seen) {
    const Index count = seen.last - seen.first;
    if (count == 0) return;
    if (call_.settings.softcap) {
      cap_row(scores + seen.first, count, static_cast<T>(*call_.settings.softcap));
    }
    if (call_.mask.has_alibi()) add_alibi(r, scores, keys);
    if (!call_.mask.has_elementwise()) return;
    scores += seen.first;
    const auto length = static_cast<std::size_t>(count);
    const bool additive = call_.mask.has_additive();
    const Index first = keys.first + seen.first;
    call_.mask.template read_row<T>(block_.b, block_.h, block_.first + r, {first, first + count},
                                    {seen_, length}, {bias_, additive ? length : std::size_t{0}});
    for (Index j = 0; j < count; ++j) {
      if (additive) scores[j] += bias_[j];
      scores[j] = seen_[j] != 0 ? scores[j] : kNone;
      rows_[r].sees_key = rows_[r].sees_key || seen_[j] != 0;
    }
  }

  // Linear biases of a row, but for the open keys, which stand nowhere.
  void add_alibi(Index r, T* scores, KeyRange keys) {
    const Index count = keys.last - keys.first;
    const Index open = std::clamp<Index>(call_.mask.open_keys() - keys.first, 0, count);
    std::copy_n(scores, open, bias_);
    const auto self = static_cast<double>(call_.mask.position(block_.b, block_.first + r));
    add_linear_bias(scores, round_up(count, kLanes<T>),
                    static_cast<T>(self - static_cast<double>(keys.first)),
                    static_cast<T>(call_.mask.alibi_slope(block_.h)));
    std::copy_n(bias_, open, scores);
  }

  // The weight of a score that is `difference` above the largest.
  T weight_at(T difference) const {
    const hn::ScalableTag<T> d;
    const auto x = hn::Set(d, difference);
    return hn::GetLane(natural_ ? power<Base::e>(d, x) : power<Base::two>(d, x));
  }

  // The largest score has grown: all that was relative to the old one shrinks.
  void rescale(Index r, T difference) {
    const hn::ScalableTag<T> d;
    const auto factor = hn::Set(d, weight_at(difference));
    hn::Store(hn::Mul(factor, hn::Load(d, sums_.row(r))), d, sums_.row(r));
    T* output = output_.row(r);
    for (Index c = 0; c < padded_width_; c += kLanes<T>) {
      hn::Store(hn::Mul(factor, hn::LoadU(d, output + c)), d, output + c);
    }
  }

  // V of a tile, its rows filled up to whole vectors where they are none.
  View<const T> values_of(KeyRange tile) {
    const T* v = call_.v.finite().data() + (key_matrix_ * call_.mask.keys() + tile.first) * width_;
    if (!packs_values_) return {v, width_};
    for (Index j = 0; j < tile.last - tile.first; ++j) {
      T* row = packed_values_ + j * padded_width_;
      std::copy_n(v + j * width_, width_, row);
      std::fill(row + width_, row + padded_width_, T(0));
    }
    return {packed_values_, padded_width_};
  }

  // False where all weights are 0.
  bool finish_row(Index r) {
    const Row& row = rows_[r];
    const Index i = query_matrix_ * call_.mask.queries() + block_.first + r;
    T* output = result_.output.data() + i * width_;
    T* weights = result_.weights ? result_.weights->data() + i * call_.mask.keys() : nullptr;
    if (row.is_nan) {
      constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
      std::fill_n(output, width_, kNaN);
      if (weights != nullptr) fill_seen(r, weights, kNaN);
      return true;
    }
    const T sum = sum_of<T>(sums_.row(r));
    if (sum == 0) {
      std::fill_n(output, width_, T(0));
      if (weights != nullptr) std::fill_n(weights, call_.mask.keys(), T(0));
      return false;
    }
    for (Index c = 0; c < width_; ++c) output[c] = output_.row(r)[c] / sum;
    if (weights != nullptr) write_weights(r, sum, weights);
    add_non_finite_values(r, sum, output);
    return true;
  }

  // The kept weights are relative to what was the largest score at their time. There are none of
  // tiles that the row sees nothing of.
  void write_weights(Index r, T sum, T* weights) {
    const Row& row = rows_[r];
    const Index base = keys_.first / kTileKeys;
    const Index first = row.keys.first / kTileKeys * kTileKeys;
    std::fill_n(weights, first, T(0));
    for (Index begin = first; begin < row.keys.last; begin += kTileKeys) {
      const Index tile = begin / kTileKeys - base;
      write_scaled<T>(kept_weights_.row(r) + tile * kTileKeys,
                      std::min(kTileKeys, row.keys.last - begin),
                      weight_at(kept_max_.row(r)[tile] - row.max) / sum, weights + begin);
    }
    std::fill(weights + row.keys.last, weights + call_.mask.keys(), T(0));
  }

  void fill_seen(Index r, T* weights, T value) {
    std::fill_n(weights, call_.mask.keys(), T(0));
    for (Index j = rows_[r].keys.first; j < rows_[r].keys.last; ++j) {
      if (call_.mask.may_attend(block_.b, block_.h, block_.first + r, j)) weights[j] = value;
    }
  }

  // NaN and infinities of V, which the product left out, for the rows that see them.
  void add_non_finite_values(Index r, T sum, T* output) {
    for (const Index j : call_.v.non_finite_rows(key_matrix_)) {
      if (!call_.mask.may_attend(block_.b, block_.h, block_.first + r, j)) continue;
      const T* v = call_.v.given().data() + (key_matrix_ * call_.mask.keys() + j) * width_;
      T weight = weight_of(r, j, sum);
      if (call_.settings.dropout > 0) {
        drop_weights<T>({&weight, 1}, j, query_matrix_ * call_.mask.queries() + block_.first + r,
                        call_.settings.dropout, call_.settings.seed);
      }
      for (Index c = 0; c < width_; ++c) {
        if (!std::isfinite(v[c])) output[c] += weight * v[c];
      }
    }
  }

  // One weight by itself: only whether it is 0 matters to what is not finite.
  T weight_of(Index r, Index j, T sum) const {
    const T* q = queries(r).data;
    const T* k = call_.k.data() + (key_matrix_ * call_.mask.keys() + j) * depth_;
    T score = 0;
    for (Index x = 0; x < depth_; ++x) score += q[x] * k[x];
    score *= static_cast<T>(call_.settings.scale);
    if (call_.settings.softcap) {
      const T cap = static_cast<T>(*call_.settings.softcap);
      score = cap * std::tanh(score / cap);
    }
    if (!natural_) return std::exp2(score * PowerConstants<T>::kLog2E - rows_[r].max) / sum;
    score += call_.mask.template bias<T>(block_.b, block_.h, block_.first + r, j);
    return std::exp(score - rows_[r].max) / sum;
  }

  const KernelCall<T>& call_;
  const RowBlock& block_;
  AttentionResult<T>& result_;
  Index query_matrix_, key_matrix_;
  Index depth_, width_, padded_width_;
  bool natural_;  // scores are changed before the softmax: powers of e, not of two, see Base
  bool adjusts_;  // they are, or are hidden one by one
  T scale_;       // of the scores, log2(e) in it where the weights are powers of two
  KeyRange keys_;
  Row rows_[kTiledRows];
  Index tiles_ = 0, weights_stride_ = 0;
  bool packs_values_ = false;
  T* panels_ = nullptr;                  // K of a tile, see pack_transposed
  View<T> scores_{};                     // [kRows, kTileKeys], see kScoreStride
  View<T> maxima_{};                     // [kRows, lanes], see StoreAndCompare
  View<T> output_{};                     // [rows, padded_width], from a row's first keys on
  View<T> sums_{};                       // [rows, lanes], added up at the end
  T* packed_values_ = nullptr;           // [kTileKeys, padded_width]
  View<T> kept_weights_{}, kept_max_{};  // [rows, tiles kTileKeys], [rows, tiles]
  T* bias_ = nullptr;
  std::uint8_t* seen_ = nullptr;
};

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
