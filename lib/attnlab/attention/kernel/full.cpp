#include "attnlab/attention/kernel/full.h"

#include <algorithm>
#include <limits>

#include "attnlab/attention/kernel/masked_rows.h"
#include "attnlab/attention/kernel/seen_product.h"
#include "attnlab/attention/kernel/softcap.h"

namespace attnlab {
namespace {

// One block on its way from Q and K to the output.
template <class T>
class FullBlock {
 public:
  FullBlock(const KernelCall<T>& call, const RowBlock& block, AttentionResult<T>& result)
      : call_(call),
        block_(block),
        result_(result),
        query_matrix_(call.query_matrix(block.b, block.h)),
        key_matrix_(call.key_matrix(block.b, block.h)),
        rows_(call.mask, block),
        keys_(rows_.keys()) {}

  ZeroRows attend() {
    keep_scores_outside();
    Matrix<T> scores = score(keys_);
    ZeroRows rows;
    for (Index r = 0; r < block_.rows; ++r) weigh_row(r, scores, rows);
    mix_values(scores);
    return rows;
  }

 private:
  // raw_scores = Q K^T, scores = scale raw_scores, capped_scores = C tanh(scores / C).
  Matrix<T> score(KeyRange keys) {
    const auto q = call_.q.matrix(query_matrix_).middleRows(block_.first, block_.rows);
    const auto k = call_.k.matrix(key_matrix_).middleRows(keys.first, keys.last - keys.first);
    Matrix<T> scores(q.rows(), k.rows());
    scores.noalias() = q * k.transpose();
    keep(result_.raw_scores, keys, scores);
    scores *= static_cast<T>(call_.settings.scale);
    keep(result_.scores, keys, scores);
    if (call_.settings.softcap) {
      const T cap = static_cast<T>(*call_.settings.softcap);
      scores = scores.unaryExpr([cap](T s) { return softcap(s, cap); });
    }
    keep(result_.capped_scores, keys, scores);
    return scores;
  }

  // Scores may be asked for where the mask leaves nothing to compute.
  void keep_scores_outside() {
    if (!result_.raw_scores && !result_.scores && !result_.capped_scores) return;
    score({0, keys_.first});
    score({keys_.last, call_.mask.keys()});
  }

  // Turns scores into weights: masked_scores = capped_scores + bias, -infinity where masked,
  // weights = softmax(masked_scores), then dropout. Counts the row where all its weights are 0.
  void weigh_row(Index r, Matrix<T>& scores, ZeroRows& rows) {
    const std::span<T> row(scores.data() + r * scores.cols(),
                           static_cast<std::size_t>(scores.cols()));
    const SeenKeys seen = rows_.mask(r, row);
    keep_row(result_.masked_scores, seen.query, -std::numeric_limits<T>::infinity(), row);
    rows_.weigh(seen, row);
    if (std::all_of(row.begin(), row.end(), [](T weight) { return weight == 0; })) {
      ++(seen.any() ? rows.overflowed : rows.empty);
    }
    keep_row(result_.weights, seen.query, T(0), row);
    rows_.drop(seen, row, call_.settings);
  }

  // output = weights V
  void mix_values(const Matrix<T>& weights) {
    // Added to 0, which makes +0 of -0: the sign of a masked value must not show either.
    Matrix<T> output = Matrix<T>::Zero(block_.rows, call_.v.shape()[3]);
    add_seen_values<T>(weights, call_.v, key_matrix_, call_.mask, block_, keys_, output);
    result_.output.matrix(query_matrix_).middleRows(block_.first, block_.rows) = output;
  }

  // Copies columns `keys` of the block into a matrix that was asked for.
  void keep(std::optional<Tensor<T>>& into, KeyRange keys, const Matrix<T>& block) {
    if (!into) return;
    into->matrix(query_matrix_).block(block_.first, keys.first, block.rows(), block.cols()) = block;
  }

  // Copies one row, with `outside` at the keys that no row of the block sees.
  void keep_row(std::optional<Tensor<T>>& into, Index i, T outside, std::span<const T> row) {
    if (!into) return;
    const auto keys = static_cast<std::size_t>(call_.mask.keys());
    T* whole = into->data() + (query_matrix_ * call_.mask.queries() + i) * call_.mask.keys();
    const auto first = static_cast<std::size_t>(keys_.first);
    std::fill_n(whole, first, outside);
    std::copy(row.begin(), row.end(), whole + first);
    std::fill(whole + first + row.size(), whole + keys, outside);
  }

  const KernelCall<T>& call_;
  const RowBlock& block_;
  AttentionResult<T>& result_;
  Index query_matrix_;
  Index key_matrix_;
  MaskedRows<T> rows_;
  KeyRange keys_;
};

}  // namespace

template <class T>
ZeroRows attend_full(const KernelCall<T>& call, const RowBlock& block, AttentionResult<T>& result) {
  return FullBlock<T>(call, block, result).attend();
}

template ZeroRows attend_full(const KernelCall<float>&, const RowBlock&, AttentionResult<float>&);
template ZeroRows attend_full(const KernelCall<double>&, const RowBlock&, AttentionResult<double>&);

}  // namespace attnlab
