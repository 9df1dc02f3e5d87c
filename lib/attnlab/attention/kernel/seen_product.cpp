#include "attnlab/attention/kernel/seen_product.h"

#include <cmath>

namespace attnlab {
namespace {

// output += weight value, of the elements that the product left out.
template <class T>
void add_non_finite(T weight, const T* value, Index count, T* output) {
  for (Index c = 0; c < count; ++c) {
    if (!std::isfinite(value[c])) output[c] += weight * value[c];
  }
}

}  // namespace

template <class T>
void add_seen_values(const Matrix<T>& weights, const Values<T>& values, Index values_matrix,
                     const Mask& mask, const RowBlock& block, KeyRange keys,
                     Eigen::Ref<Matrix<T>> output) {
  const auto finite = values.finite().matrix(values_matrix);
  output.noalias() += weights * finite.middleRows(keys.first, keys.last - keys.first);
  const auto given = values.given().matrix(values_matrix);
  for (const Index j : values.non_finite_rows(values_matrix)) {
    if (j < keys.first || j >= keys.last) continue;
    for (Index r = 0; r < block.rows; ++r) {
      if (!mask.may_attend(block.b, block.h, block.first + r, j)) continue;
      add_non_finite(weights(r, j - keys.first), given.row(j).data(), given.cols(),
                     output.row(r).data());
    }
  }
}

template <class T>
void add_seeing_rows(const Matrix<T>& weights, const Values<T>& values, Index values_matrix,
                     const Mask& mask, const RowBlock& block, KeyRange keys,
                     Eigen::Ref<Matrix<T>> output) {
  const auto finite = values.finite().matrix(values_matrix);
  output.noalias() += weights.transpose() * finite.middleRows(block.first, block.rows);
  const auto given = values.given().matrix(values_matrix);
  for (const Index i : values.non_finite_rows(values_matrix)) {
    if (i < block.first || i >= block.first + block.rows) continue;
    for (Index j = keys.first; j < keys.last; ++j) {
      if (!mask.may_attend(block.b, block.h, i, j)) continue;
      add_non_finite(weights(i - block.first, j - keys.first), given.row(i).data(), given.cols(),
                     output.row(j - keys.first).data());
    }
  }
}

template void add_seen_values(const Matrix<float>&, const Values<float>&, Index, const Mask&,
                              const RowBlock&, KeyRange, Eigen::Ref<Matrix<float>>);
template void add_seen_values(const Matrix<double>&, const Values<double>&, Index, const Mask&,
                              const RowBlock&, KeyRange, Eigen::Ref<Matrix<double>>);
template void add_seeing_rows(const Matrix<float>&, const Values<float>&, Index, const Mask&,
                              const RowBlock&, KeyRange, Eigen::Ref<Matrix<float>>);
template void add_seeing_rows(const Matrix<double>&, const Values<double>&, Index, const Mask&,
                              const RowBlock&, KeyRange, Eigen::Ref<Matrix<double>>);

}  // namespace attnlab
