// One block of queries on its way through the tiles of its keys and back. Included once for every
// target, see hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_BACKWARD_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_BACKWARD_BLOCK_INL_H_
#undef ATTNLAB_KERNEL_BACKWARD_BLOCK_INL_H_
#else
#define ATTNLAB_KERNEL_BACKWARD_BLOCK_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attnlab/attention/kernel/backward_columns-inl.h"
#include "attnlab/attention/kernel/backward_mask-inl.h"
#include "attnlab/attention/kernel/backward_tiled.h"
#include "attnlab/attention/kernel/pack-inl.h"
#include "attnlab/attention/kernel/tile-inl.h"
#include "attnlab/attention/kernel/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A number of each query of a block.
template <class T>
struct alignas(64) PerQuery : std::array<T, kMostBackwardRows> {};

template <class T>
class BackwardTiles {
 public:
  BackwardTiles(const BackwardCall<T>& call, const RowBlock& block, const BackwardShare<T>& share)
      : call_(call),
        block_(block),
        share_(share),
        query_row_((block.b * call.mask.heads() + block.h) * call.mask.queries() + block.first),
        key_matrix_(share.b * call.k.shape()[1] + share.kv_head),
        depth_(call.q.shape()[3]),
        width_(call.v.shape()[3]),
        padded_depth_(round_up(depth_, kBackwardPad<T>)),
        padded_width_(round_up(width_, kBackwardPad<T>)),
        columns_(round_up(block.rows, kPanel<T>)),
        mask_(call, block, key_matrix_, share.left_out + query_row_) {
    max_.fill(-std::numeric_limits<T>::infinity());
    max_tile_.fill(mask_.keys().first);
  }

  void differentiate() {
    keys_ = mask_.keys();
    if (keys_.empty()) return;
    take_memory();
    pack_queries();
    for_each_tile([&](KeyRange tile) { score(tile); });
    find_pivots();
    for_each_tile([&](KeyRange tile) { weigh(tile); });
    normalise();
    for_each_tile([&](KeyRange tile) { add_gradients(tile); });
    if (share_.grad_q != nullptr) write_grad_q();
  }

 private:
  template <class F>
  void for_each_tile(const F& f) {
    for (Index first = keys_.first; first < keys_.last; first += kBackwardKeys) {
      f(KeyRange{first, std::min(keys_.last, first + kBackwardKeys)});
    }
  }

  void take_memory() {
    const Index m = keys_.last - keys_.first, rows = columns_;
    const bool caps = call_.settings.softcap.has_value();
    const Index packed_keys = padded_depth_ == depth_ ? 0 : kBackwardKeys * padded_depth_;
    using W = Workspace;
    Workspace& memory = Workspace::mine();
    memory.reset(W::bytes_of<T>(m * rows) * (caps ? 3 : 2) + 2 * W::bytes_of<T>(rows * depth_) +
                 2 * W::bytes_of<T>(rows * width_) + 2 * W::bytes_of<T>(rows * padded_depth_) +
                 W::bytes_of<T>(rows * padded_width_) + W::bytes_of<T>(packed_keys));
    weights_ = memory.take<T>(m * rows);
    grads_ = memory.take<T>(m * rows);
    slopes_ = memory.take<T>(caps ? m * rows : 0);
    query_panels_ = memory.take<T>(rows * depth_);
    cotangent_panels_ = memory.take<T>(rows * width_);
    pivot_panels_ = memory.take<T>(rows * width_);
    queries_ = {memory.take<T>(rows * padded_depth_), padded_depth_};
    grad_q_ = {memory.take<T>(rows * padded_depth_), padded_depth_};
    cotangent_ = {memory.take<T>(rows * padded_width_), padded_width_};
    packed_keys_ = memory.take<T>(packed_keys);
    std::fill_n(grad_q_.data, rows * padded_depth_, T(0));
  }

  // Rows of the block, of the tensors of queries; rows of the head, of those of keys.
  View<const T> block_rows(const Values<T>& tensor, Index width) const {
    return {tensor.finite().data() + query_row_ * width, width};
  }
  View<const T> key_rows(const Tensor<T>& tensor, Index first, Index width) const {
    return {tensor.data() + (key_matrix_ * call_.mask.keys() + first) * width, width};
  }
  // A tile of the matrices that are kept.
  View<T> tile_of(T* matrix, KeyRange tile) const {
    return {matrix + (tile.first - keys_.first) * columns_, columns_};
  }
  TileSize size_of(KeyRange tile) const { return {tile.last - tile.first, columns_}; }

  // into = factor row, each element rounded once, filled up to `padded` elements.
  static void scale_row(const T* row, Index width, double factor, Index padded, T* into) {
    for (Index c = 0; c < width; ++c) into[c] = static_cast<T>(row[c] * factor);
    std::fill(into + width, into + padded, T(0));
  }

  void pack_queries() {
    const View<const T> q = block_rows(call_.q, depth_);
    pack_transposed<T>(q, block_.rows, depth_, static_cast<T>(call_.settings.scale), query_panels_);
    pack_transposed<T>(block_rows(call_.grad_output, width_), block_.rows, width_, T(1),
                       cotangent_panels_);
  }

  // S^T = K (scale Q)^T, capped and masked, and its maxima.
  void score(KeyRange tile) {
    const View<T> scores = tile_of(weights_, tile);
    const TileSize size = size_of(tile);
    multiply_all_rows<T>(size.keys, key_rows(call_.k.finite(), tile.first, depth_),
                         {query_panels_, kPanel<T>}, kPanel<T> * depth_, depth_, columns_, scores,
                         Store{});
    if (call_.settings.softcap) {
      cap_columns<T>(scores, tile_of(slopes_, tile), size, static_cast<T>(*call_.settings.softcap));
    }
    mask_.hide(tile, scores);
    const PerQuery<T> before = max_;
    raise_maxima<T>({scores.data, scores.stride}, size, max_.data(), is_nan_.data());
    for (std::size_t r = 0; r < max_.size(); ++r) {
      if (max_[r] > before[r]) max_tile_[r] = tile.first;
    }
  }

  // The first key of the largest score.
  Index key_of_max(Index r) const {
    Index j = max_tile_[at(r)];
    while (weights_[(j - keys_.first) * columns_ + r] != max_[at(r)]) ++j;
    return j;
  }

  // Of each row its entry of dP = grad_output V^T at the largest weight, to the bit what weigh()
  // computes, dropout included. Rows that do not count get a maximum that makes all weights 0.
  void find_pivots() {
    constexpr T kNone = std::numeric_limits<T>::infinity();
    std::array<Index, kMostBackwardRows> keys{};
    for (Index r = 0; r < block_.rows; ++r) {
      T& max = max_[at(r)];
      T* row = cotangent_.data + r * width_;
      if (is_nan_[at(r)] != 0 || max == kNone) mask_.leave_out(r, LeftOut::all);
      if (mask_.left_out(r) == LeftOut::all || max == -kNone) {
        max = kNone;
        std::fill_n(row, width_, T(0));
        continue;
      }
      keys[at(r)] = key_of_max(r);
      std::copy_n(key_rows(call_.v.finite(), keys[at(r)], width_).data, width_, row);
    }
    std::fill(max_.begin() + block_.rows, max_.end(), kNone);
    pack_transposed<T>({cotangent_.data, width_}, block_.rows, width_, T(1), pivot_panels_);
    multiply_panels_by_column<T>(pivot_panels_, cotangent_panels_, width_, columns_, pivot_.data());
    for (Index r = 0; r < block_.rows; ++r) {
      if (max_[at(r)] < kNone) mask_.drop_row(r, keys[at(r)], {&pivot_[at(r)], 1});
    }
  }

  // dP^T = V grad_output^T, and from the scores the weights before they are divided by their sum.
  void weigh(KeyRange tile) {
    const View<T> grads = tile_of(grads_, tile);
    const TileSize size = size_of(tile);
    multiply_all_rows<T>(size.keys, key_rows(call_.v.finite(), tile.first, width_),
                         {cotangent_panels_, kPanel<T>}, kPanel<T> * width_, width_, columns_,
                         grads, Store{});
    mask_.drop(tile, grads);
    weigh_columns<T>(tile_of(weights_, tile), grads, size, max_.data(), pivot_.data(), sums_.data(),
                     means_.data());
  }

  // The sums are complete: weights = w / sum. The factors that a whole row has go into grad_output,
  // Q and, at the end, grad_q. A row whose largest weight is most of it keeps its pivot, which
  // saves its digits; in others the mean itself takes its place, and what it lacks that of the
  // mean.
  void normalise() {
    for (Index r = 0; r < block_.rows; ++r) {
      const double sum = sums_[at(r)];
      double mean = sum > 0 ? means_[at(r)] / sum : 0;
      if (sum >= 2) {
        mean += static_cast<double>(pivot_[at(r)]);
        pivot_[at(r)] = static_cast<T>(mean);
        mean -= static_cast<double>(pivot_[at(r)]);
      }
      mean_[at(r)] = static_cast<T>(mean);
      if (!std::isfinite(mean_[at(r)])) mask_.leave_out(r, LeftOut::grad_scores);
      if (sum > 0 && mask_.left_out(r) == LeftOut::nothing) {
        factor_[at(r)] = static_cast<T>(call_.settings.scale / sum);
      }
      scale_row(block_rows(call_.grad_output, width_).row(r), width_, sum > 0 ? 1 / sum : 0,
                padded_width_, cotangent_.row(r));
      scale_row(block_rows(call_.q, depth_).row(r), depth_, exact_factor(r), padded_depth_,
                queries_.row(r));
    }
  }

  // factor_ before it was rounded.
  double exact_factor(Index r) const {
    return factor_[at(r)] != 0 ? call_.settings.scale / sums_[at(r)] : 0;
  }

  // dS^T over the factor, and what the tile adds to the gradients of its keys and of the block's
  // queries.
  void add_gradients(KeyRange tile) {
    const View<T> weights = tile_of(weights_, tile), grads = tile_of(grads_, tile);
    const View<const T> grad_scores{grads.data, grads.stride};
    const TileSize size = size_of(tile);
    differentiate_columns<T>({weights.data, weights.stride}, grads, size, pivot_.data(),
                             mean_.data(), factor_.data());
    if (call_.settings.softcap) {
      const View<T> slopes = tile_of(slopes_, tile);
      multiply_columns<T>(grads, {slopes.data, slopes.stride}, size);
    }
    if (share_.grad_v != nullptr) {
      mask_.drop(tile, weights);
      multiply_all_rows<T>(size.keys, View<const T>{weights.data, weights.stride},
                           {cotangent_.data, padded_width_}, kPanel<T>, block_.rows, padded_width_,
                           {share_.grad_v + tile.first * share_.stride_v, share_.stride_v},
                           AddTo{});
    }
    if (share_.grad_k != nullptr) {
      multiply_all_rows<T>(
          size.keys, grad_scores, {queries_.data, padded_depth_}, kPanel<T>, block_.rows,
          padded_depth_, {share_.grad_k + tile.first * share_.stride_k, share_.stride_k}, AddTo{});
    }
    if (share_.grad_q != nullptr) {
      multiply_all_rows<T>(block_.rows,
                           TransposedView<const T>{grad_scores.data, grad_scores.stride},
                           padded_rows<T>(key_rows(call_.k.finite(), tile.first, depth_), size.keys,
                                          depth_, padded_depth_, packed_keys_),
                           kPanel<T>, size.keys, padded_depth_, grad_q_, AddTo{});
    }
  }

  void write_grad_q() {
    for (Index r = 0; r < block_.rows; ++r) {
      scale_row(grad_q_.row(r), depth_, exact_factor(r), depth_,
                share_.grad_q + (query_row_ + r) * depth_);
    }
  }

  static constexpr std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  const BackwardCall<T>& call_;
  const RowBlock& block_;
  const BackwardShare<T>& share_;
  Index query_row_;  // the block's first, of [batch, heads, n]
  Index key_matrix_;
  Index depth_, width_, padded_depth_, padded_width_;
  Index columns_;  // of the matrices that are kept: the queries, filled up to whole panels
  BackwardMask<T> mask_;
  KeyRange keys_;
  T *weights_ = nullptr, *grads_ = nullptr;  // P^T, and dP^T that becomes dS^T [keys, columns]
  T* slopes_ = nullptr;                      // of the softcap [keys, columns]
  T* query_panels_ = nullptr;                // scale Q, see pack_transposed
  T* cotangent_panels_ = nullptr;            // grad_output
  T* pivot_panels_ = nullptr;                // V at the largest weights
  View<T> queries_{}, grad_q_{};  // factor Q, and grad_q over factor [rows, padded_depth]
  View<T> cotangent_{};           // grad_output over the sum of weights
  T* packed_keys_ = nullptr;      // [kBackwardKeys, padded_depth]
  PerQuery<T> max_, is_nan_{}, pivot_{}, mean_{}, factor_{};
  PerQuery<double> sums_{}, means_{};
  std::array<Index, kMostBackwardRows> max_tile_{};
};

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
