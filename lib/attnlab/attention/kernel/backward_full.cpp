#include "attnlab/attention/kernel/backward_full.h"

#include <algorithm>

#include "attnlab/attention/kernel/full.h"
#include "attnlab/attention/kernel/masked_rows.h"
#include "attnlab/attention/kernel/seen_product.h"
#include "attnlab/attention/kernel/softcap.h"
#include "attnlab/attention/softmax_jacobian.h"
#include "attnlab/core/threads.h"

namespace attnlab {
namespace {

template <class T>
std::span<T> row_of(Matrix<T>& matrix, Index r) {
  return {matrix.data() + r * matrix.cols(), static_cast<std::size_t>(matrix.cols())};
}

// One block on its way from the gradient of its output to those of Q, K and V.
template <class T>
class BackwardBlock {
 public:
  BackwardBlock(const BackwardCall<T>& call, const RowBlock& block, Index key_matrix,
                bool adds_grad_v, AttentionGradients<T>& gradients)
      : call_(call),
        block_(block),
        gradients_(gradients),
        adds_grad_v_(adds_grad_v && gradients.grad_v),
        query_matrix_(block.b * call.mask.heads() + block.h),
        key_matrix_(key_matrix),
        rows_(call.mask, block),
        keys_(rows_.keys()) {}

  void differentiate() {
    if (keys_.empty()) return;
    const bool past_weights = gradients_.grad_q || gradients_.grad_k;
    score();
    if (past_weights) differentiate_mixing();
    for (Index r = 0; r < block_.rows; ++r) {
      const std::span<T> weights = row_of(weights_, r);
      const SeenKeys seen = rows_.mask(r, weights);
      rows_.weigh(seen, weights);
      if (past_weights) differentiate_row(r, seen);
      rows_.drop(seen, weights, call_.settings);
    }
    add_gradients();
  }

 private:
  // As forward: scores = scale Q K^T, capped_scores = C tanh(scores / C). They become weights.
  void score() {
    const auto q = rows(call_.q.given());
    const auto k = keys(call_.k.given());
    weights_.resize(q.rows(), k.rows());
    weights_.noalias() = q * k.transpose();
    weights_ *= static_cast<T>(call_.settings.scale);
    if (!call_.settings.softcap) return;
    const T cap = static_cast<T>(*call_.settings.softcap);
    slopes_ = weights_.unaryExpr([cap](T s) { return softcap_slope(s, cap); });
    weights_ = weights_.unaryExpr([cap](T s) { return softcap(s, cap); });
  }

  // output = weights V, backwards: grad_output V^T.
  void differentiate_mixing() {
    const auto grad_output = rows(call_.grad_output.given());
    const auto v = keys(call_.v.given());
    grad_scores_.resize(grad_output.rows(), v.rows());
    grad_scores_.noalias() = grad_output * v.transpose();
  }

  // Dropout, weights = softmax(masked_scores) and capped_scores = C tanh(scores / C), backwards:
  // the gradient of a row's dropped weights becomes that of its scores, 0 where a key is masked.
  void differentiate_row(Index r, const SeenKeys& seen) {
    const std::span<T> row = row_of(grad_scores_, r);
    rows_.drop(seen, row, call_.settings);
    const std::span<T> part = seen.part(row);
    const std::span<const T> weights = seen.part(row_of(weights_, r));
    for (std::size_t x = 0; x < part.size(); ++x) part[x] = seen.sees(x) ? part[x] : T(0);
    const auto argmax = std::max_element(weights.begin(), weights.end()) - weights.begin();
    softmax_jacobian_product<T>(weights, static_cast<std::size_t>(argmax), part, part);
    if (call_.settings.softcap) {
      const std::span<const T> slopes = seen.part(row_of(slopes_, r));
      for (std::size_t x = 0; x < part.size(); ++x) part[x] *= slopes[x];
    }
    // Selected again: a row that is NaN is so for the keys it sees only.
    for (std::size_t x = 0; x < part.size(); ++x) part[x] = seen.sees(x) ? part[x] : T(0);
    seen.fill_around(row, T(0));
  }

  void add_gradients() {
    if (adds_grad_v_) {
      auto grad_v = keys(*gradients_.grad_v);
      add_seeing_rows<T>(weights_, call_.grad_output, query_matrix_, call_.mask, block_, keys_,
                         grad_v);
    }
    // scores = scale Q K^T, backwards.
    if (gradients_.grad_q || gradients_.grad_k) {
      grad_scores_ *= static_cast<T>(call_.settings.scale);
    }
    if (gradients_.grad_q) {
      auto grad_q = rows(*gradients_.grad_q);
      add_seen_values<T>(grad_scores_, call_.k, key_matrix_, call_.mask, block_, keys_, grad_q);
    }
    if (gradients_.grad_k) {
      auto grad_k = keys(*gradients_.grad_k);
      add_seeing_rows<T>(grad_scores_, call_.q, query_matrix_, call_.mask, block_, keys_, grad_k);
    }
  }

  // The block's rows of a tensor of queries, and its keys of a tensor of keys.
  template <class Of>
  auto rows(Of& tensor) const {
    return tensor.matrix(query_matrix_).middleRows(block_.first, block_.rows);
  }
  template <class Of>
  auto keys(Of& tensor) const {
    return tensor.matrix(key_matrix_).middleRows(keys_.first, rows_.key_count());
  }

  const BackwardCall<T>& call_;
  const RowBlock& block_;
  AttentionGradients<T>& gradients_;
  bool adds_grad_v_;
  Index query_matrix_;
  Index key_matrix_;
  MaskedRows<T> rows_;
  KeyRange keys_;
  Matrix<T> weights_, slopes_, grad_scores_;  // [rows, keys]
};

}  // namespace

template <class T>
void backward_full(const BackwardCall<T>& call, const RowBlock& block, bool adds_grad_v,
                   AttentionGradients<T>& gradients) {
  const Index kv_heads = call.k.shape()[1];
  const Index kv_head = block.h / (call.mask.heads() / kv_heads);
  BackwardBlock<T>(call, block, block.b * kv_heads + kv_head, adds_grad_v, gradients)
      .differentiate();
}

template <class T>
void backward_full(const BackwardCall<T>& call, Index threads, AttentionGradients<T>& gradients) {
  const Index n = call.mask.queries(), kv_heads = call.k.shape()[1];
  const Index group = call.mask.heads() / kv_heads;
  parallel_for(threads, call.mask.batch() * kv_heads, [&](Index task) {
    const Index b = task / kv_heads, first_head = task % kv_heads * group;
    for (Index h = first_head; h < first_head + group; ++h) {
      for (Index first = 0; first < n; first += kFullRows) {
        const RowBlock block{b, h, first, std::min(kFullRows, n - first)};
        backward_full(call, block, true, gradients);
      }
    }
  });
}

template void backward_full(const BackwardCall<float>&, const RowBlock&, bool,
                            AttentionGradients<float>&);
template void backward_full(const BackwardCall<double>&, const RowBlock&, bool,
                            AttentionGradients<double>&);
template void backward_full(const BackwardCall<float>&, Index, AttentionGradients<float>&);
template void backward_full(const BackwardCall<double>&, Index, AttentionGradients<double>&);

}  // namespace attnlab
