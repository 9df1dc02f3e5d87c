// NaN and infinities of V. Included once for every target, see
// hwy/foreach_target.h.
#if defined(ATTNLAB_KERNEL_NON_FINITE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTNLAB_KERNEL_NON_FINITE_INL_H_
#undef ATTNLAB_KERNEL_NON_FINITE_INL_H_
#else
#define ATTNLAB_KERNEL_NON_FINITE_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "attnlab/attention/kernel/call.h"
#include "attnlab/attention/kernel/dropout.h"
#include "attnlab/attention/kernel/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

// A query of a block whose weights are base^(score - reference) / sum.
template <class T>
struct WeighedRow {
  Index query;  // of its head
  Base base;    // two: of scores that are products alone
  T reference;
  T sum;
};

// One weight by itself: only whether it is 0 matters to what is not finite.
template <class T>
T weight_of(const KernelCall<T>& call, const RowBlock& block, const WeighedRow<T>& row, Index key) {
  const Index depth = call.q.shape()[3];
  const T* q = call.q.data() +
               (call.query_matrix(block.b, block.h) * call.mask.queries() + row.query) * depth;
  const T* k = call.k.data() + (call.key_matrix(block.b, block.h) * call.mask.keys() + key) * depth;
  T score = 0;
  for (Index x = 0; x < depth; ++x) score += q[x] * k[x];
  score *= static_cast<T>(call.settings.scale);
  if (call.settings.softcap) {
    const T cap = static_cast<T>(*call.settings.softcap);
    score = cap * std::tanh(score / cap);
  }
  if (row.base == Base::two) {
    return std::exp2(score * PowerConstants<T>::kLog2E - row.reference) / row.sum;
  }
  score += call.mask.template bias<T>(block.b, block.h, row.query, key);
  return std::exp(score - row.reference) / row.sum;
}

// Adds to the output of a row what the product left out: NaN and infinities of V that it sees.
template <class T>
void add_non_finite_values(const KernelCall<T>& call, const RowBlock& block,
                           const WeighedRow<T>& row, T* output) {
  const Index width = call.v.shape()[3], matrix = call.key_matrix(block.b, block.h);
  for (const Index j : call.v.non_finite_rows(matrix)) {
    if (!call.mask.may_attend(block.b, block.h, row.query, j)) continue;
    const T* v = call.v.given().data() + (matrix * call.mask.keys() + j) * width;
    T weight = weight_of(call, block, row, j);
    if (call.settings.dropout > 0) {
      drop_weights<T>({&weight, 1}, j,
                      call.query_matrix(block.b, block.h) * call.mask.queries() + row.query,
                      call.settings.dropout, call.settings.seed);
    }
    for (Index c = 0; c < width; ++c) {
      if (!std::isfinite(v[c])) output[c] += weight * v[c];
    }
  }
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
