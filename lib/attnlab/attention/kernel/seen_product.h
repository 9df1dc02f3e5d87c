#pragma once

#include "attnlab/attention/kernel/row_block.h"
#include "attnlab/attention/kernel/values.h"
#include "attnlab/attention/mask.h"

namespace attnlab {

// Products of a block's weights [rows, keys] that forget what the mask hides, NaN and infinities
// too: weights are exactly 0 there, and what is not finite enters only where it is seen.
// `values_matrix` says which matrix of the values.

// output += weights values, with the values of `keys`. output [rows, d], values [m, d].
template <class T>
void add_seen_values(const Matrix<T>& weights, const Values<T>& values, Index values_matrix,
                     const Mask& mask, const RowBlock& block, KeyRange keys,
                     Eigen::Ref<Matrix<T>> output);

// output += weights^T values, with the values of the block's queries. output [keys, d], values
// [n, d].
template <class T>
void add_seeing_rows(const Matrix<T>& weights, const Values<T>& values, Index values_matrix,
                     const Mask& mask, const RowBlock& block, KeyRange keys,
                     Eigen::Ref<Matrix<T>> output);

}  // namespace attnlab
