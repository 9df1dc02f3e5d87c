// The packed matrix product against a double loop.

#include "attnlab/attention/kernel/product.h"

#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attnlab/attention/kernel/tiled.h"
#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

// A product of parts of larger matrices: rows are further apart than they are long.
template <class T>
struct Drawn {
  Index rows, depth, columns;
  Index a_stride = depth + 3, b_stride = columns + 5, c_stride = columns + 2;
  std::vector<T> a = draw(rows * a_stride, Stream::input_q);
  std::vector<T> b = draw(depth * b_stride, Stream::input_k);
  std::vector<T> bias = draw(columns, Stream::bias_q);
  std::vector<T> c = std::vector<T>(static_cast<std::size_t>(rows * c_stride), T(7));

  static std::vector<T> draw(Index count, Stream stream) {
    std::vector<float> normals(static_cast<std::size_t>(count));
    fill_normal(normals, 1, stream);
    return {normals.begin(), normals.end()};
  }

  Product<T> product(bool biased = true) {
    return {rows,     depth,    columns,  a.data(),
            a_stride, b.data(), b_stride, biased ? bias.data() : nullptr,
            c.data(), c_stride};
  }
  T& at(Index i, Index j) { return c[static_cast<std::size_t>(i * c_stride + j)]; }

  double expected(Index i, Index j, bool biased = true) const {
    double sum = biased ? static_cast<double>(bias[static_cast<std::size_t>(j)]) : 0;
    for (Index k = 0; k < depth; ++k) {
      sum += static_cast<double>(a[static_cast<std::size_t>(i * a_stride + k)]) *
             static_cast<double>(b[static_cast<std::size_t>(k * b_stride + j)]);
    }
    return sum;
  }
};

template <class T>
void check_shape(Index rows, Index depth, Index columns, bool biased) {
  Drawn<T> drawn{rows, depth, columns};
  multiply(drawn.product(biased));
  // The partial sums are as large as sqrt(k): their roundings add up to depth / 3 epsilons,
  // typically.
  const double bound =
      static_cast<double>(std::numeric_limits<T>::epsilon()) * (4 + 2 * static_cast<double>(depth));
  for (Index i = 0; i < rows; ++i) {
    INFO(rows << " x " << depth << " x " << columns << ", row " << i);
    for (Index j = 0; j < columns; ++j) {
      if (std::abs(static_cast<double>(drawn.at(i, j)) - drawn.expected(i, j, biased)) > bound) {
        FAIL_CHECK("column " << j);
      }
    }
    for (Index j = columns; j < drawn.c_stride; ++j) CHECK(drawn.at(i, j) == 7);
  }
}

TEST_CASE("a product of any shape is that of a double loop, and writes nothing beside it") {
  for (const Index rows : {1, 5, 6, 7, 25}) {
    for (const Index depth : {0, 1, 3, 256, 257, 600}) {
      for (const Index columns : {1, 7, 16, 24, 33, 128, 129, 300}) {
        check_shape<float>(rows, depth, columns, true);
      }
    }
  }
  check_shape<float>(7, 257, 129, false);
  check_shape<double>(7, 257, 129, true);
  check_shape<double>(13, 3, 5, false);
}

TEST_CASE("a product is right on every target of this processor") {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target) << " runs as " << tiled_target());
    check_shape<float>(13, 300, 77, true);
    check_shape<double>(13, 300, 77, true);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("an element of a product has the same bits whatever is computed beside it") {
  Drawn<float> whole{40, 300, 200};
  multiply(whole.product());
  Drawn<float> parts{40, 300, 200};
  for (const Index row : {Index{0}, Index{17}}) {
    for (const Index column : {Index{0}, Index{11}, Index{150}}) {
      Product<float> part = parts.product();
      part.rows = (row == 0 ? 17 : 40) - row;
      part.columns = (column == 0 ? 11 : column == 11 ? 150 : 200) - column;
      part.a += row * part.a_stride;
      part.b += column;
      part.bias += column;
      part.c += row * part.c_stride + column;
      multiply(part);
    }
  }
  CHECK(whole.c == parts.c);
}

TEST_CASE("NaN stays in its row of a product") {
  Drawn<float> drawn{8, 20, 30};
  drawn.a[static_cast<std::size_t>(3 * drawn.a_stride + 2)] =
      std::numeric_limits<float>::quiet_NaN();
  multiply(drawn.product());
  for (Index i = 0; i < 8; ++i) {
    for (Index j = 0; j < 30; ++j) CHECK(std::isnan(drawn.at(i, j)) == (i == 3));
  }
}

}  // namespace
}  // namespace attnlab
