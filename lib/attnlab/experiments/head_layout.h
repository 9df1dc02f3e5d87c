#pragma once

#include <optional>
#include <string_view>

#include "attnlab/core/tensor.h"

namespace attnlab {

// How a user's tensors hold their heads, so that results come back in the same form. Inside,
// everything is [batch, heads, n, d].
struct HeadLayout {
  int rank = 4;         // of the input
  bool packed = false;  // the heads lie side by side in the last axis

  // [batch, heads, n, d_v] in the input's form: [n, d_v], [heads, n, d_v], [batch, heads, n, d_v],
  // or merged when packed.
  template <class T>
  Tensor<T> restore_output(Tensor<T> output) const;
  // The way back: an output in the input's form as `output` [batch, heads, n, d_v]. Throws
  // InputError naming `name` when it has another form.
  template <class T>
  Tensor<T> split_output(Tensor<T> tensor, const Shape& output, std::string_view name) const;
  // [batch, n, d], the heads merged already, as [n, d] for rank 2.
  template <class T>
  Tensor<T> restore_rows(Tensor<T> rows) const;
  // [batch, heads, n, m] as [n, m], [heads, n, m] or [batch, heads, n, m]: heads stay apart.
  template <class T>
  Tensor<T> restore_scores(Tensor<T> scores) const;
  // [batch, kv_heads, p, d] of past and present, which are never packed; unpacked inputs keep
  // their rank.
  template <class T>
  Tensor<T> restore_present(Tensor<T> present) const;
};

// `tensor` as [batch, heads, n, d]. With `heads`, rank 2 and 3 are packed and split, and rank 4
// must have as many. `name` and `heads_option` are what errors call them. Throws InputError.
template <class T>
Tensor<T> to_heads(Tensor<T> tensor, std::optional<Index> heads, std::string_view name,
                   std::string_view heads_option);

}  // namespace attnlab
