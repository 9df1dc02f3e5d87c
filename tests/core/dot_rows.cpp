// Dot products of many vectors have the bits of dot, on every target of the processor.

#include "attnlab/core/dot_rows.h"

#include <hwy/targets.h>

#include <bit>
#include <vector>

#include "attnlab/core/dot.h"
#include "attnlab/core/random.h"
#include "catch.h"
#include "core/wide_entries.h"

namespace attnlab {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

TEST_CASE("dot products of rows have the bits of one dot product each, on every target") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    for (const std::size_t length :
         {1u, 2u, 3u, 7u, 8u, 15u, 16u, 17u, 31u, 32u, 33u, 64u, 100u, 1001u}) {
      INFO(length);
      constexpr std::size_t kRows = 7;
      const std::vector<float> a = test::wide_entries(kRows * length, Stream::input_q);
      const std::vector<float> b = test::wide_entries(kRows * length, Stream::input_k);
      std::vector<double> own(kRows), first(kRows);
      dot_of_rows(a, b, length, own);
      dot_with_rows(std::span(a).first(length), b, first);
      for (std::size_t row = 0; row < kRows; ++row) {
        const auto a_row = std::span(a).subspan(row * length, length);
        const auto b_row = std::span(b).subspan(row * length, length);
        CHECK(same_bits(own[row], dot(a_row, b_row)));
        CHECK(same_bits(first[row], dot(std::span(a).first(length), b_row)));
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("a dot product of opposite zeros is what dot makes of them") {
  const std::vector<float> zeros(16, -0.0f), ones(16, 1.0f);
  std::vector<double> out(1);
  dot_of_rows(zeros, ones, 16, out);
  CHECK(same_bits(out[0], dot(zeros, ones)));
}

}  // namespace
}  // namespace attnlab
