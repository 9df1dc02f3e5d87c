// Dot products of all rows with all rows are sums in the order that is told, on every target of the
// processor.

#include "attnlab/core/dot_matrix.h"

#include <hwy/targets.h>

#include <bit>
#include <vector>

#include "attnlab/core/random.h"
#include "catch.h"
#include "core/wide_entries.h"

namespace attnlab {
namespace {

double in_runs(const double* a, const float* b, std::size_t length) {
  double sum = 0;
  for (std::size_t first = 0; first < length; first += kDotRun) {
    double run = 0;
    for (std::size_t i = first; i < std::min(first + kDotRun, length); ++i) {
      run += a[i] * static_cast<double>(b[i]);
    }
    sum += run;
  }
  return sum;
}

// Entries whose bits are not those of a plain sum; those beside the rows have to stay.
int different(std::size_t rows, std::size_t columns, std::size_t length) {
  const std::vector<float> narrow = test::wide_entries(rows * length, Stream::input_q);
  const std::vector<float> b = test::wide_entries(columns * length, Stream::input_k);
  const std::vector<double> a(narrow.begin(), narrow.end());
  const std::size_t stride = columns + 2;
  std::vector<double> out(rows * stride, -7);
  dot_matrix(a, b, length, out, stride);
  int count = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < stride; ++j) {
      const double expected =
          j < columns ? in_runs(a.data() + i * length, b.data() + j * length, length) : -7;
      const auto bits = std::bit_cast<std::uint64_t>(out[i * stride + j]);
      count += bits == std::bit_cast<std::uint64_t>(expected) ? 0 : 1;
    }
  }
  return count;
}

TEST_CASE("all dot products of two matrices are sums in runs, on every target") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    for (const std::size_t length : {1u, 2u, 63u, 64u, 65u, 128u, 300u}) {
      for (const std::size_t rows : {1u, 2u, 3u, 4u, 6u, 7u, 13u}) {
        for (const std::size_t columns : {1u, 15u, 16u, 17u, 40u}) {
          INFO(rows << " x " << columns << ", " << length);
          CHECK(different(rows, columns, length) == 0);
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace attnlab
