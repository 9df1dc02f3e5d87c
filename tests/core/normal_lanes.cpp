// The transform to normals in vectors on chosen bits: those where it changes its branch.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "attnlab/core/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/normal_lanes.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/core/normal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

// normals_of every block.
void transform(const std::vector<PhiloxCounter>& blocks,
               std::vector<std::array<float, 4>>& normals) {
  normals.resize(blocks.size());
#if HWY_NATIVE_FMA
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN std::uint32_t from[hn::MaxLanes(d)];
  HWY_ALIGN float to[hn::MaxLanes(d)];
  for (std::size_t first = 0; first < blocks.size(); first += lanes) {
    const std::size_t count = std::min(lanes, blocks.size() - first);
    hn::Vec<decltype(words)> bits[4];
    for (std::size_t w = 0; w < 4; ++w) {
      for (std::size_t i = 0; i < lanes; ++i) from[i] = i < count ? blocks[first + i][w] : 0;
      bits[w] = hn::Load(words, from);
    }
    Uniform<hn::ScalableTag<float>> u;
    split_uniform(d, {bits[0], bits[2]}, u);
    hn::Vec<decltype(d)> cosines[2], sines[2];
    normals_of_split(d, u, {bits[1], bits[3]}, cosines, sines);
    for (std::size_t w = 0; w < 4; ++w) {
      hn::Store(w % 2 == 0 ? cosines[w / 2] : sines[w / 2], d, to);
      for (std::size_t i = 0; i < count; ++i) normals[first + i][w] = to[i];
    }
  }
#else
  std::transform(blocks.begin(), blocks.end(), normals.begin(), normals_of);
#endif
}

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "catch.h"

namespace attnlab {
namespace {

HWY_EXPORT(transform);

// Around the places where a branch is taken, in steps of 1 and of 1000, and every sum of a few
// powers of two.
std::vector<std::uint32_t> words_at_the_edges() {
  std::vector<std::uint32_t> words;
  for (const std::uint32_t edge :
       {0u, 0x20000000u, 0x40000000u, 0x5a82799au, 0x60000000u, 0x80000000u, 0xa0000000u,
        0xb504f333u, 0xc0000000u, 0xe0000000u}) {
    for (std::uint32_t i = 0; i < 4096; ++i) {
      words.push_back(edge + i - 2048);
      words.push_back(edge + 1000 * (i - 2048));
    }
  }
  for (int a = 0; a < 32; ++a) {
    for (int b = 0; b < 32; ++b) {
      const std::uint32_t word = std::uint32_t{1} << a | std::uint32_t{1} << b;
      words.insert(words.end(), {word, ~word, word - 1, ~word + 1});
    }
  }
  return words;
}

TEST_CASE("the transform in vectors has the scalar one's bits where it changes its branch") {
  std::vector<PhiloxCounter> blocks;
  for (const std::uint32_t word : words_at_the_edges()) {
    const std::uint32_t other = word * 0x9E3779B9u;
    blocks.push_back({word, other, other, word});
    blocks.push_back({word, word, ~word, ~word});
  }
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    std::vector<std::array<float, 4>> normals;
    HWY_DYNAMIC_DISPATCH(transform)(blocks, normals);
    int different = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::array<float, 4> expected = normals_of(blocks[i]);
      for (std::size_t w = 0; w < 4; ++w) {
        const auto bits = std::bit_cast<std::uint32_t>(normals[i][w]);
        if (bits != std::bit_cast<std::uint32_t>(expected[w])) ++different;
      }
    }
    CHECK(different == 0);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace attnlab
#endif
