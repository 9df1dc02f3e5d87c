#include "attnlab/attention/kernel/full.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attnlab/attention/kernel/dropout.h"
#include "attnlab/attention/kernel/masked_softmax.h"

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
        keys_(keys_of_block()),
        seen_(static_cast<std::size_t>(keys_.last - keys_.first)),
        bias_(call.mask.has_additive() ? seen_.size() : 0) {}

  ZeroRows attend() {
    keep_scores_outside();
    Matrix<T> scores = score(keys_);
    ZeroRows rows;
    for (Index r = 0; r < block_.rows; ++r) weigh_row(r, scores, rows);
    mix_values(scores);
    return rows;
  }

 private:
  // The keys that some row of the block may see; no product is needed beside them.
  KeyRange keys_of_block() const {
    KeyRange all{call_.mask.keys(), 0};
    for (Index r = 0; r < block_.rows; ++r) {
      const KeyRange row = call_.mask.key_range(block_.b, block_.first + r);
      if (row.empty()) continue;
      all = {std::min(all.first, row.first), std::max(all.last, row.last)};
    }
    return all.empty() ? KeyRange{} : all;
  }

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
      scores = scores.unaryExpr([cap](T s) { return cap * std::tanh(s / cap); });
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
    const Index i = block_.first + r;
    const std::span<T> all(scores.data() + r * scores.cols(), seen_.size());
    const KeyRange range = call_.mask.key_range(block_.b, i);
    // Of a row without keys, the range may lie anywhere.
    const KeyRange keys = range.empty() ? KeyRange{keys_.first, keys_.first} : range;
    const auto begin = static_cast<std::size_t>(keys.first - keys_.first);
    const auto count = static_cast<std::size_t>(keys.last - keys.first);
    const std::span<T> row = all.subspan(begin, count);

    const std::span<const std::uint8_t> seen = mask_row(i, keys, row);
    fill_around(all, begin, count, -std::numeric_limits<T>::infinity());
    keep_row(result_.masked_scores, i, -std::numeric_limits<T>::infinity(), all);

    masked_softmax(row, seen);
    if (std::all_of(row.begin(), row.end(), [](T weight) { return weight == 0; })) {
      const bool sees =
          seen.empty() ? count > 0 : std::find(seen.begin(), seen.end(), 1) != seen.end();
      ++(sees ? rows.overflowed : rows.empty);
    }
    fill_around(all, begin, count, T(0));
    keep_row(result_.weights, i, T(0), all);

    if (call_.settings.dropout > 0) {
      drop_weights(row, keys.first, query_matrix_ * call_.mask.queries() + i,
                   call_.settings.dropout, call_.settings.seed);
    }
  }

  // Adds the bias to the scores of `keys` and selects -infinity where the boolean or additive mask
  // hides one. Which keys remain; empty when no such mask was given.
  std::span<const std::uint8_t> mask_row(Index i, KeyRange keys, std::span<T> row) {
    if (!call_.mask.has_elementwise()) return {};
    const std::span<std::uint8_t> seen = std::span(seen_).first(row.size());
    const std::span<T> bias = std::span(bias_).first(std::min(bias_.size(), row.size()));
    call_.mask.read_row(block_.b, block_.h, i, keys, seen, bias);
    for (std::size_t x = 0; x < bias.size(); ++x) row[x] += bias[x];
    for (std::size_t x = 0; x < row.size(); ++x) {
      row[x] = seen[x] != 0 ? row[x] : -std::numeric_limits<T>::infinity();
    }
    return seen;
  }

  // output = weights V
  void mix_values(const Matrix<T>& weights) {
    const auto v = call_.v.finite().matrix(key_matrix_);
    // Added to 0, which makes +0 of -0: the sign of a masked value must not show either.
    Matrix<T> output = Matrix<T>::Zero(block_.rows, v.cols());
    output.noalias() += weights * v.middleRows(keys_.first, keys_.last - keys_.first);
    add_non_finite_values(weights, output);
    result_.output.matrix(query_matrix_).middleRows(block_.first, block_.rows) = output;
  }

  // What the product left out: NaN and infinities, for the rows that see them.
  void add_non_finite_values(const Matrix<T>& weights, Matrix<T>& output) {
    const auto v = call_.v.given().matrix(key_matrix_);
    for (const Index j : call_.v.non_finite_rows(key_matrix_)) {
      if (j < keys_.first || j >= keys_.last) continue;
      for (Index r = 0; r < block_.rows; ++r) {
        if (!call_.mask.may_attend(block_.b, block_.h, block_.first + r, j)) continue;
        for (Index c = 0; c < v.cols(); ++c) {
          if (!std::isfinite(v(j, c))) output(r, c) += weights(r, j - keys_.first) * v(j, c);
        }
      }
    }
  }

  static void fill_around(std::span<T> all, std::size_t begin, std::size_t count, T value) {
    std::fill_n(all.begin(), begin, value);
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(begin + count), all.end(), value);
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
    std::copy(row.begin(), row.end(), whole + first);
    fill_around({whole, keys}, first, row.size(), outside);
  }

  const KernelCall<T>& call_;
  const RowBlock& block_;
  AttentionResult<T>& result_;
  Index query_matrix_;
  Index key_matrix_;
  KeyRange keys_;
  std::vector<std::uint8_t> seen_;  // of the row at hand
  std::vector<T> bias_;
};

}  // namespace

template <class T>
ZeroRows attend_full(const KernelCall<T>& call, const RowBlock& block, AttentionResult<T>& result) {
  return FullBlock<T>(call, block, result).attend();
}

template ZeroRows attend_full(const KernelCall<float>&, const RowBlock&, AttentionResult<float>&);
template ZeroRows attend_full(const KernelCall<double>&, const RowBlock&, AttentionResult<double>&);

}  // namespace attnlab
