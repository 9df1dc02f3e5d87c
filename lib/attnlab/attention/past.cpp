#include "attnlab/attention/past.h"

#include "attnlab/attention/requirements.h"
#include "attnlab/core/error.h"

namespace attnlab {

template <class T>
Tensor<T> append_keys(const Tensor<T>& past, const Tensor<T>& current, std::string_view name) {
  const Shape& before = past.shape();
  const Shape& after = current.shape();
  for (const Shape& shape : {before, after}) {
    if (shape.rank() == 4) continue;
    throw InputError("", name, shape.str(), "need 4 axes, [batch, kv_heads, length, width]");
  }
  require_same(name, before, "the current", after, 0, "batch");
  require_same(name, before, "the current", after, 1, "heads");
  require_same(name, before, "the current", after, 3, "width");
  Tensor<T> all = Tensor<T>::uninitialized({after[0], after[1], before[2] + after[2], after[3]});
  for (Index i = 0; i < all.shape().matrices(); ++i) {
    all.matrix(i).topRows(before[2]) = past.matrix(i);
    all.matrix(i).bottomRows(after[2]) = current.matrix(i);
  }
  return all;
}

template <class T>
Tensor<T> keys_of(const Tensor<T>& all, Index first, Index count) {
  const Shape& shape = all.shape();
  Tensor<T> keys = Tensor<T>::uninitialized({shape[0], shape[1], count, shape[3]});
  for (Index i = 0; i < shape.matrices(); ++i) {
    keys.matrix(i) = all.matrix(i).middleRows(first, count);
  }
  return keys;
}

template Tensor<float> append_keys(const Tensor<float>&, const Tensor<float>&, std::string_view);
template Tensor<double> append_keys(const Tensor<double>&, const Tensor<double>&, std::string_view);
template Tensor<float> keys_of(const Tensor<float>&, Index, Index);
template Tensor<double> keys_of(const Tensor<double>&, Index, Index);

}  // namespace attnlab
