// One block of queries on its way through the tiles of its keys. Included once for every target,
// see hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_TILED_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_TILED_BLOCK_INL_H_
#undef ATTNLAB_KERNEL_TILED_BLOCK_INL_H_
#else
#define ATTNLAB_KERNEL_TILED_BLOCK_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <vector>

#include "attnlab/attention/kernel/adjust-inl.h"
#include "attnlab/attention/kernel/call.h"
#include "attnlab/attention/kernel/dropout.h"
#include "attnlab/attention/kernel/exp-inl.h"
#include "attnlab/attention/kernel/kept_weights-inl.h"
#include "attnlab/attention/kernel/non_finite-inl.h"
#include "attnlab/attention/kernel/pack-inl.h"
#include "attnlab/attention/kernel/row_keys.h"
#include "attnlab/attention/kernel/score_row-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"
#include "attnlab/attention/kernel/weigh-inl.h"
#include "attnlab/attention/kernel/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
        adjuster_(call, block),
        base_(adjuster_.adds() ? Base::e : Base::two),
        adjusts_(adjuster_.adds() || call.mask.has_elementwise()),
        scale_(static_cast<T>(call.settings.scale * (base_ == Base::e ? 1 : std::numbers::log2e))),
        slack_(adjusts_ || call.v.largest() > T(0x1p64) ? 0 : 24),
        row_keys_(call.mask, block),
        keys_(row_keys_.all()),
        rows_(static_cast<std::size_t>(block.rows)),
        writer_(result.weights ? result.weights->shape().size() : 0) {
    take_memory();
  }

  ZeroRows attend() {
    if (keys_.empty()) finish_rows(0, block_.rows, false);
    for (Index tile = keys_.first / kTileKeys * kTileKeys; tile < keys_.last; tile += kTileKeys) {
      attend_tile({tile, std::min(keys_.last, tile + kTileKeys)});
    }
    if (result_.weights) hwy::FlushStream();
    return zero_rows_;
  }

 private:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();

  // What is known of a query between tiles.
  struct Row {
    T reference = kNone;    // what its scores are taken less
    bool sees_key = false;  // under a mask of elements
    bool is_nan = false;
  };

  Row& row(Index r) { return rows_[static_cast<std::size_t>(r)]; }
  const Row& row(Index r) const { return rows_[static_cast<std::size_t>(r)]; }

  void take_memory() {
    const Index first_tile = keys_.first / kTileKeys;
    const Index tiles = (keys_.last + kTileKeys - 1) / kTileKeys - first_tile;
    const Index packed_values = width_ == padded_width_ ? 0 : kTileKeys * padded_width_;
    using W = Workspace;
    Workspace& memory = Workspace::mine();
    memory.reset(W::bytes_of<T>(kTileKeys * depth_) + 2 * W::bytes_of<T>(kRows * kScoreStride) +
                 4 * W::bytes_of<T>(kRows * kLanes<T>) +
                 W::bytes_of<T>(block_.rows * padded_width_) +
                 W::bytes_of<T>(block_.rows * kLanes<T>) + W::bytes_of<T>(packed_values) +
                 (result_.weights ? KeptWeights<T>::bytes(block_.rows, tiles) : 0));
    panels_ = memory.take<T>(kTileKeys * depth_);
    own_scores_ = {memory.take<T>(kRows * kScoreStride), kScoreStride};
    again_ = {memory.take<T>(kRows * kScoreStride), kScoreStride};
    const auto vectors = [&] { return memory.take<T>(kRows * kLanes<T>); };
    state_ = {vectors(), vectors(), vectors(), vectors()};
    output_ = {memory.take<T>(block_.rows * padded_width_), padded_width_};
    sums_ = {memory.take<T>(block_.rows * kLanes<T>), kLanes<T>};
    packed_values_ = memory.take<T>(packed_values);
    if (result_.weights) kept_ = {memory, block_.rows, first_tile, tiles};
    std::fill_n(sums_.data, block_.rows * kLanes<T>, T(0));
  }

  View<const T> queries(Index r) const { return {call_.q.data() + query(r) * depth_, depth_}; }

  void attend_tile(KeyRange tile) {
    const Index count = tile.last - tile.first;
    const T* k = call_.k.data() + (key_matrix_ * call_.mask.keys() + tile.first) * depth_;
    pack_transposed<T>({k, depth_}, count, depth_, scale_, panels_);
    const T* v = call_.v.finite().data() + (key_matrix_ * call_.mask.keys() + tile.first) * width_;
    const auto values = padded_rows<T>({v, width_}, count, width_, padded_width_, packed_values_);
    for (Index r = 0, rows = 0; r < block_.rows; r += rows) {
      rows = rows_of_group(block_.rows - r);
      const KeyRange seen = row_keys_.of_rows(r, rows);
      if (seen.empty()) {
        if (tile.first <= keys_.first) finish_rows(r, rows, false);
      } else if (std::max(seen.first, tile.first) < std::min(seen.last, tile.last)) {
        const bool is_first = seen.first >= tile.first, is_last = seen.last <= tile.last;
        const KeyRange keys{tile.first, std::min(seen.last, tile.last)};
        const bool is_divided = attend_group(r, rows, keys, values, is_first, is_last);
        if (is_last) finish_rows(r, rows, is_divided);
      }
    }
  }

  // Scores of `rows` queries from r on with the keys, weights, and their share of the output, which
  // is what was not there before with the first keys. Whether with the last ones the output is
  // divided and in its place.
  bool attend_group(Index r, Index rows, KeyRange keys, View<const T> values, bool is_first,
                    bool is_last) {
    const Index count = keys.last - keys.first;
    const Index plain = plain_columns(r, rows, keys);
    // Weights that are kept are not copied, but where some of them are dropped out.
    const bool keeps = result_.weights.has_value(), drops = call_.settings.dropout > 0;
    scores_ = keeps && !drops ? kept_.from_row(r, keys) : own_scores_;
    if (plain > 0) {
      weigh_in_registers(r, rows, keys, plain);
    } else {
      multiply_keys(r, rows, {0, round_up(count, kLanes<T>)}, scores_, Store{});
      for (Index x = 0; x < rows; ++x) weigh_row(r + x, scores_.row(x), keys);
    }
    if (keeps) keep_weights(r, rows, keys);
    if (drops) drop_group(r, rows, keys);
    const bool divides = is_last && have_quotients(r, rows);
    const View<T> sums = output_.from_row(r);
    const auto multiply = [&](View<T> into, auto finish) {
      multiply_rows<T>(rows, View<const T>{scores_.data, scores_.stride}, values, kPanel<T>, count,
                       padded_width_, into, finish);
    };
    // Beside the products of the next panel the divider costs next to nothing.
    if (divides && is_first) {
      multiply(output_of(r), StoreQuotient<T>{state_.sums});
    } else if (divides) {
      multiply(output_of(r), AddAndStoreQuotient<T>{state_.sums, sums, output_of(r)});
    } else if (is_first) {
      multiply(sums, Store{});
    } else {
      multiply(sums, AddTo{});
    }
    return divides;
  }

  // Whether the output of these rows is numbers divided by sums, which then are in the state.
  bool have_quotients(Index r, Index rows) {
    if (width_ != padded_width_) return false;
    const hn::ScalableTag<T> d;
    for (Index x = 0; x < rows; ++x) {
      const auto sum = static_cast<T>(sum_of<T>(sums_.row(r + x)));
      if (row(r + x).is_nan || sum == 0) return false;
      hn::Store(hn::Set(d, sum), d, state_.sums + x * kLanes<T>);
    }
    return true;
  }

  View<T> output_of(Index r) const { return {result_.output.data() + query(r) * width_, width_}; }
  // Its number in Q.
  Index query(Index r) const { return query_matrix_ * call_.mask.queries() + block_.first + r; }

  // Scores of the group from r on with the columns of the tile, from a whole panel on.
  template <class Finish>
  void multiply_keys(Index r, Index rows, KeyRange columns, View<T> scores, Finish finish) {
    multiply_rows<T>(rows, queries(r), {panels_ + columns.first * depth_, kPanel<T>},
                     kPanel<T> * depth_, depth_, columns.last - columns.first,
                     {scores.data + columns.first, scores.stride}, finish);
  }

  // How many keys, in whole panels, can be weighed in registers: those that all rows of the group
  // see, where scores are the products alone.
  Index plain_columns(Index r, Index rows, KeyRange keys) const {
    if (adjusts_) return 0;
    const bool begins = row(r).reference == kNone;
    Index last = keys.last;
    for (Index x = r; x < r + rows; ++x) {
      const KeyRange seen = row_keys_.of(x);
      if (seen.first > keys.first || row(x).is_nan) return 0;
      if ((row(x).reference == kNone) != begins) return 0;
      last = std::min(last, seen.last);
    }
    return std::max<Index>(0, last - keys.first) / kPanel<T> * kPanel<T>;
  }

  // The weights of the group, whose rows all see the first `plain` keys.
  void weigh_in_registers(Index r, Index rows, KeyRange keys, Index plain) {
    const hn::ScalableTag<T> d;
    constexpr Index kLane = kLanes<T>;
    const Index count = keys.last - keys.first, columns = round_up(count, kLane);
    const bool begins = row(r).reference == kNone;
    const Index first = begins ? kPanel<T> : 0;
    if (begins) {
      multiply_keys(r, rows, {0, first}, scores_, StoreFirstWeights<T>{state_});
      for (Index x = 0; x < rows; ++x) row(r + x).reference = state_.references[x * kLane];
    } else {
      for (Index x = 0; x < rows; ++x) begin_row(state_, x, row(r + x).reference);
    }
    multiply_keys(r, rows, {first, plain}, scores_, StoreWeights<T, false>{state_, scores_});
    if (plain < columns) {
      for (Index x = 0; x < rows; ++x) {
        const Index end = std::min(count, row_keys_.of(r + x).last - keys.first);
        hn::Store(hn::Set(d, static_cast<T>(end)), d, state_.ends + x * kLane);
      }
      multiply_keys(r, rows, {plain, columns}, scores_, StoreWeights<T, true>{state_, scores_});
    }
    unsigned again = 0;  // a bit a row
    for (Index x = 0; x < rows; ++x) {
      if (is_within(state_, x, slack_)) {
        add_sums(r + x, state_.sums + x * kLane);
      } else {
        again |= 1U << x;
      }
    }
    if (again != 0) weigh_again(r, rows, keys, begins, again);
  }

  // Rows of a group, from their scores once more.
  HWY_NOINLINE void weigh_again(Index r, Index rows, KeyRange keys, bool begins, unsigned which) {
    const Index columns = round_up(keys.last - keys.first, kLanes<T>);
    multiply_keys(r, rows, {0, columns}, again_, Store{});
    for (Index x = 0; x < rows; ++x) {
      if ((which >> x & 1) == 0) continue;
      std::copy_n(again_.row(x), columns, scores_.row(x));
      if (begins) row(r + x).reference = kNone;
      weigh_row(r + x, scores_.row(x), keys);
    }
  }

  // Turns the scores of one row with the keys of a tile into weights that are relative to its
  // reference, and the row's output and sum likewise.
  //
  // Whether a row is weighed here or in registers, it gets the same bits. Its reference is its
  // largest score in the first panel that it sees something of, or if that is not all of it in the
  // tile; from there on the largest of a tile that is more than the slack above.
  void weigh_row(Index r, T* scores, KeyRange keys) {
    Row& of = row(r);
    const Index count = keys.last - keys.first;
    const KeyRange range = row_keys_.of(r);
    const KeyRange seen{std::clamp<Index>(range.first - keys.first, 0, count),
                        std::clamp<Index>(range.last - keys.first, 0, count)};
    if (adjusts_ && adjuster_.adjust(r, scores, keys, seen)) of.sees_key = true;
    std::fill_n(scores, seen.first, kNone);
    const Index columns = round_up(count, 2 * kLanes<T>);
    std::fill_n(scores + seen.last, columns - seen.last, kNone);
    const T max = largest<T>(scores, columns);
    if (max == kNone && has_nan(scores, count)) of.is_nan = true;
    if (of.is_nan || max == kNone) {
      std::fill_n(scores, count, T(0));
      return;
    }
    if (of.reference == kNone) {
      const bool sees_panel = !adjusts_ && seen.first == 0 && seen.last >= kPanel<T>;
      of.reference = sees_panel ? largest<T>(scores, kPanel<T>) : max;
      if (is_above(max, of.reference)) of.reference = max;
    } else if (is_above(max, of.reference)) {
      rescale(r, of.reference - max);
      of.reference = max;
    }
    const hn::ScalableTag<T> d;
    T* const sums = state_.sums;
    hn::Store(hn::Zero(d), d, sums);
    of.is_nan =
        !(base_ == Base::e ? weights_of_row<T, Base::e>(scores, columns, of.reference, sums)
                           : weights_of_row<T, Base::two>(scores, columns, of.reference, sums));
    add_sums(r, sums);
  }

  // As is_within has it.
  bool is_above(T score, T reference) const { return score - reference > slack_ + T(0.5); }

  void add_sums(Index r, const T* sums) {
    const hn::ScalableTag<T> d;
    hn::Store(hn::Add(hn::Load(d, sums_.row(r)), hn::Load(d, sums)), d, sums_.row(r));
  }

  void keep_weights(Index r, Index rows, KeyRange keys) {
    const View<T> kept = kept_.from_row(r, keys);
    for (Index x = 0; x < rows; ++x) {
      kept_.set_reference(r + x, keys, row(r + x).reference);
      if (kept.data == scores_.data) continue;
      std::copy_n(scores_.row(x), keys.last - keys.first, kept.row(x));
    }
  }

  void drop_group(Index r, Index rows, KeyRange keys) {
    const auto count = static_cast<std::size_t>(keys.last - keys.first);
    for (Index x = 0; x < rows; ++x) {
      drop_weights<T>({scores_.row(x), count}, keys.first, query(r + x), call_.settings.dropout,
                      call_.settings.seed);
    }
  }

  // The reference has grown: all that was relative to the old one shrinks.
  void rescale(Index r, T difference) {
    const hn::ScalableTag<T> d;
    const auto factor = hn::Set(d, power_at(base_, difference));
    hn::Store(hn::Mul(factor, hn::Load(d, sums_.row(r))), d, sums_.row(r));
    T* output = output_.row(r);
    for (Index c = 0; c < padded_width_; c += kLanes<T>) {
      hn::Store(hn::Mul(factor, hn::LoadU(d, output + c)), d, output + c);
    }
  }

  void finish_rows(Index first, Index count, bool is_divided) {
    const bool is_all = !result_.weights && call_.v.non_finite_rows(key_matrix_).empty();
    if (is_divided && is_all) return;
    for (Index r = first; r < first + count; ++r) {
      if (!finish_row(r, is_divided)) {
        const bool sees_key =
            call_.mask.has_elementwise() ? row(r).sees_key : !row_keys_.of(r).empty();
        ++(sees_key ? zero_rows_.overflowed : zero_rows_.empty);
      }
    }
  }

  // False where all weights are 0.
  bool finish_row(Index r, bool is_divided) {
    const Row& of = row(r);
    T* output = output_of(r).data;
    T* weights = result_.weights ? result_.weights->data() + query(r) * call_.mask.keys() : nullptr;
    if (of.is_nan) {
      constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
      std::fill_n(output, width_, kNaN);
      if (weights != nullptr) fill_seen(r, weights, kNaN);
      return true;
    }
    const double exact_sum = sum_of<T>(sums_.row(r));
    const auto sum = static_cast<T>(exact_sum);
    if (sum == 0) {
      std::fill_n(output, width_, T(0));
      if (weights != nullptr) writer_.zeros(call_.mask.keys(), weights);
      return false;
    }
    if (!is_divided) {
      for (Index c = 0; c < width_; ++c) output[c] = output_.row(r)[c] / sum;
    }
    if (weights != nullptr) {
      const auto factor = [&](T from) { return power_at(base_, from - of.reference) / exact_sum; };
      kept_.write(r, row_keys_.of(r), call_.mask.keys(), factor, writer_, weights);
    }
    add_non_finite_values<T>(call_, block_, {block_.first + r, base_, of.reference, sum}, output);
    return true;
  }

  void fill_seen(Index r, T* weights, T value) {
    std::fill_n(weights, call_.mask.keys(), T(0));
    for (Index j = row_keys_.of(r).first; j < row_keys_.of(r).last; ++j) {
      if (call_.mask.may_attend(block_.b, block_.h, block_.first + r, j)) weights[j] = value;
    }
  }

  const KernelCall<T>& call_;
  const RowBlock& block_;
  AttentionResult<T>& result_;
  Index query_matrix_, key_matrix_, depth_, width_, padded_width_;
  ScoreAdjuster<T> adjuster_;
  Base base_;     // of the weights: e where scores are changed before the softmax
  bool adjusts_;  // they are, or are hidden one by one
  T scale_;       // of the scores, log2(e) in it where the weights are powers of two
  // How far scores may be above their reference, in powers of the base. Weights up to 2^24 leave
  // sums of 2^24 of them with V below 2^64 far from overflowing, and a score that far above has
  // been rounded as coarsely itself; for larger V there is none.
  T slack_;
  RowKeys row_keys_;
  KeyRange keys_;  // of the block
  std::vector<Row> rows_;
  ZeroRows zero_rows_;
  T* panels_ = nullptr;   // K of a tile, see pack_transposed
  View<T> own_scores_{};  // [kRows, kTileKeys], see kScoreStride
  View<T> scores_{};      // those, or where weights are kept
  View<T> again_{};       // the like, see weigh_again
  GroupState<T> state_{};
  View<T> output_{};            // [rows, padded_width], from a row's first keys on
  View<T> sums_{};              // [rows, lanes], added up at the end
  T* packed_values_ = nullptr;  // [kTileKeys, padded_width]
  KeptWeights<T> kept_;
  RowWriter<T> writer_;
};

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
