#include "attnlab/attention/kernel/projection.h"

#include <algorithm>

#include "attnlab/attention/kernel/product.h"
#include "attnlab/attention/kernel/worthwhile_threads.h"
#include "attnlab/core/threads.h"

namespace attnlab {
namespace {

// Part of x W + b: rows of one batch entry and columns of W.
struct ProjectedPart {
  Index entry, row, rows, column, columns;
};

// Writes it to `to`, its rows `stride` apart.
template <class T>
void project_part(const Tensor<T>& x, const Tensor<T>& w, const std::optional<Tensor<T>>& b,
                  const ProjectedPart& part, Kernel kernel, T* to, Index stride) {
  const Index n = x.shape()[1], in = x.shape()[2], out = w.shape()[-1];
  const T* bias = b ? b->data() + part.column : nullptr;
  if (kernel == Kernel::full) {
    Matrix<T> product = x.matrix(part.entry).middleRows(part.row, part.rows) *
                        ConstMatrixMap<T>(w.data(), in, out).middleCols(part.column, part.columns);
    if (b) product.rowwise() += ConstMatrixMap<T>(bias, 1, part.columns).row(0);
    Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>>(to, part.rows, part.columns,
                                                   Eigen::OuterStride<>(stride)) = product;
    return;
  }
  multiply(Product<T>{.rows = part.rows,
                      .depth = in,
                      .columns = part.columns,
                      .a = x.data() + (part.entry * n + part.row) * in,
                      .a_stride = in,
                      .b = w.data() + part.column,
                      .b_stride = out,
                      .bias = bias,
                      .c = to,
                      .c_stride = stride});
}

// Calls project(part) for all of x W + b, `columns` at a time, over the threads. The parts do not
// depend on the threads.
template <class T, class Project>
void for_each_part(const Tensor<T>& x, const Tensor<T>& w, Index columns,
                   const AttentionSettings& settings, const Project& project) {
  constexpr Index kRows = 240;
  const Index n = x.shape()[1], out = w.shape()[-1];
  const Index down = (n + kRows - 1) / kRows, across = (out + columns - 1) / columns;
  const double work = static_cast<double>(x.size()) * static_cast<double>(out);
  parallel_for(worthwhile_threads(work, settings.threads), x.shape()[0] * down * across,
               [&](Index task) {
                 const Index row = task / across % down * kRows, column = task % across * columns;
                 project(ProjectedPart{task / across / down, row, std::min(kRows, n - row), column,
                                       std::min(columns, out - column)});
               });
}

}  // namespace

template <class T>
Tensor<T> project_heads(const Tensor<T>& x, const Tensor<T>& w, const std::optional<Tensor<T>>& b,
                        Index heads, const AttentionSettings& settings) {
  const Index n = x.shape()[1], width = w.shape()[-1] / heads;
  Tensor<T> projected = Tensor<T>::uninitialized({x.shape()[0], heads, n, width});
  for_each_part(x, w, width, settings, [&](const ProjectedPart& part) {
    const Index matrix = part.entry * heads + part.column / width;
    project_part(x, w, b, part, settings.kernel, projected.data() + (matrix * n + part.row) * width,
                 width);
  });
  return projected;
}

template <class T>
Tensor<T> project(const Tensor<T>& x, const Tensor<T>& w, const std::optional<Tensor<T>>& b,
                  const AttentionSettings& settings) {
  constexpr Index kColumns = 128;
  const Index n = x.shape()[1], out = w.shape()[-1];
  Tensor<T> projected = Tensor<T>::uninitialized({x.shape()[0], n, out});
  for_each_part(x, w, kColumns, settings, [&](const ProjectedPart& part) {
    project_part(x, w, b, part, settings.kernel,
                 projected.data() + (part.entry * n + part.row) * out + part.column, out);
  });
  return projected;
}

template <class T>
Tensor<T> transposed(const Tensor<T>& w, const AttentionSettings& settings) {
  // Squares whose rows and columns both stay in the first cache.
  constexpr Index kSquare = 32;
  const Index columns = w.shape()[-1], rows = w.shape().matrices() * w.shape()[-2];
  Tensor<T> result = Tensor<T>::uninitialized({columns, rows});
  const ConstMatrixMap<T> from(w.data(), rows, columns);
  auto to = result.matrix();
  const Index strips = (columns + kSquare - 1) / kSquare;
  parallel_for(worthwhile_threads(static_cast<double>(w.size()), settings.threads), strips,
               [&](Index strip) {
                 const Index column = strip * kSquare, width = std::min(kSquare, columns - column);
                 for (Index row = 0; row < rows; row += kSquare) {
                   const Index height = std::min(kSquare, rows - row);
                   to.block(column, row, width, height) =
                       from.block(row, column, height, width).transpose();
                 }
               });
  return result;
}

template Tensor<float> project_heads(const Tensor<float>&, const Tensor<float>&,
                                     const std::optional<Tensor<float>>&, Index,
                                     const AttentionSettings&);
template Tensor<double> project_heads(const Tensor<double>&, const Tensor<double>&,
                                      const std::optional<Tensor<double>>&, Index,
                                      const AttentionSettings&);
template Tensor<float> project(const Tensor<float>&, const Tensor<float>&,
                               const std::optional<Tensor<float>>&, const AttentionSettings&);
template Tensor<double> project(const Tensor<double>&, const Tensor<double>&,
                                const std::optional<Tensor<double>>&, const AttentionSettings&);
template Tensor<float> transposed(const Tensor<float>&, const AttentionSettings&);
template Tensor<double> transposed(const Tensor<double>&, const AttentionSettings&);

}  // namespace attnlab
