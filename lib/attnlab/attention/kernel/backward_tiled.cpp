#include "attnlab/attention/kernel/backward_tiled.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/attention/kernel/backward_tiled.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/attention/kernel/backward_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

template <class T>
void differentiate_share(const BackwardCall<T>& call, const BackwardShare<T>& share) {
  const Index n = call.mask.queries();
  const Index group = call.mask.heads() / call.k.shape()[1];
  const Index blocks = (n + share.rows - 1) / share.rows;
  for (Index x = share.first; x < group * blocks; x += share.step) {
    const Index first = x % blocks * share.rows;
    const RowBlock block{share.b, share.kv_head * group + x / blocks, first,
                         std::min(share.rows, n - first)};
    BackwardTiles<T>(call, block, share).differentiate();
  }
}

void differentiate_float(const BackwardCall<float>& call, const BackwardShare<float>& share) {
  differentiate_share(call, share);
}
void differentiate_double(const BackwardCall<double>& call, const BackwardShare<double>& share) {
  differentiate_share(call, share);
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "attnlab/attention/kernel/key_sums.h"
#include "attnlab/core/threads.h"

namespace attnlab {
HWY_EXPORT(differentiate_float);
HWY_EXPORT(differentiate_double);

namespace {

void differentiate(const BackwardCall<float>& call, const BackwardShare<float>& share) {
  HWY_DYNAMIC_DISPATCH(differentiate_float)(call, share);
}
void differentiate(const BackwardCall<double>& call, const BackwardShare<double>& share) {
  HWY_DYNAMIC_DISPATCH(differentiate_double)(call, share);
}

// Tasks there are at least, where there are as many blocks: how many threads one head can use.
constexpr Index kTasks = 8;

// By the shape alone, as all that decides about bits.
template <class T>
Index rows_at_once(const BackwardCall<T>& call) {
  constexpr Index kLarge = Index{8} * 1024 * 1024;  // bytes of K and V of a head
  const Index widths = call.k.shape()[3] + call.v.shape()[3];
  const Index bytes = call.mask.keys() * widths * static_cast<Index>(sizeof(T));
  return bytes >= kLarge ? kMostBackwardRows : kBackwardRows;
}

// Rows that were left out, in runs.
template <class T>
void add_left_out(const BackwardCall<T>& call, Index b, Index h, const LeftOut* left_out,
                  AttentionGradients<T>& gradients) {
  const Index n = call.mask.queries();
  for (Index first = 0, last = 0; first < n; first = last) {
    while (last < n && last - first < kBackwardRows && left_out[last] == left_out[first]) ++last;
    if (left_out[first] == LeftOut::nothing) continue;
    const RowBlock block{b, h, first, last - first};
    backward_full(call, block, left_out[first] == LeftOut::all, gradients);
  }
}

}  // namespace

template <class T>
void backward_tiled(const BackwardCall<T>& call, Index threads, AttentionGradients<T>& gradients) {
  const Index n = call.mask.queries(), heads = call.mask.heads(), kv_heads = call.k.shape()[1];
  const Index matrices = call.mask.batch() * kv_heads;
  if (matrices == 0 || n == 0 || call.mask.keys() == 0) return;
  const Index group = heads / kv_heads;
  const Index rows = rows_at_once(call);
  const Index blocks = group * ((n + rows - 1) / rows);
  const Index shares = std::clamp<Index>((kTasks + matrices - 1) / matrices, 1, blocks);
  KeySums<T> grad_k(gradients.grad_k, shares), grad_v(gradients.grad_v, shares);
  std::vector<LeftOut> left_out(static_cast<std::size_t>(call.mask.batch() * heads * n));
  parallel_for(threads, matrices * shares, [&](Index task) {
    const Index matrix = task / shares, first = task % shares;
    differentiate(call,
                  BackwardShare<T>{.b = matrix / kv_heads,
                                   .kv_head = matrix % kv_heads,
                                   .first = first,
                                   .step = shares,
                                   .rows = rows,
                                   .grad_k = grad_k.start(matrix, first),
                                   .grad_v = grad_v.start(matrix, first),
                                   .stride_k = grad_k.stride(),
                                   .stride_v = grad_v.stride(),
                                   .grad_q = gradients.grad_q ? gradients.grad_q->data() : nullptr,
                                   .left_out = left_out.data()});
  });
  parallel_for(threads, matrices, [&](Index matrix) {
    grad_k.add_up(matrix);
    grad_v.add_up(matrix);
    for (Index h = matrix % kv_heads * group; h < (matrix % kv_heads + 1) * group; ++h) {
      const Index b = matrix / kv_heads;
      add_left_out(call, b, h, left_out.data() + (b * heads + h) * n, gradients);
    }
  });
}

template void backward_tiled(const BackwardCall<float>&, Index, AttentionGradients<float>&);
template void backward_tiled(const BackwardCall<double>&, Index, AttentionGradients<double>&);

}  // namespace attnlab
#endif
