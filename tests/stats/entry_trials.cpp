// Entries of many trials at once are those of each alone, and in vectors those made one by one.

#include "attnlab/stats/entry_trials.h"

#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "attnlab/stats/entry_transform.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr std::uint64_t kFirst = (std::uint64_t{1} << 32) - 2;

// Elements of [trials, length] whose bits are not those of entry(word).
int different(Distribution distribution, std::size_t trials, std::size_t length,
              float (*entry)(std::uint32_t)) {
  std::vector<float> values(trials * length);
  fill_standard_trials(values, length, {distribution}, 9, Stream::sample_k, kFirst);
  int count = 0;
  for (std::size_t row = 0; row < trials; ++row) {
    for (std::size_t i = 0; i < length; ++i) {
      const PhiloxCounter bits =
          random_block(9, Stream::sample_k, kFirst + row, static_cast<std::uint32_t>(i / 4));
      const auto expected = std::bit_cast<std::uint32_t>(entry(bits[i % 4]));
      if (std::bit_cast<std::uint32_t>(values[row * length + i]) != expected) ++count;
    }
  }
  return count;
}

TEST_CASE("entries of one word have the same bits in vectors, on every target") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    for (const std::size_t length : {1u, 2u, 3u, 4u, 17u, 64u, 20001u}) {
      for (const std::size_t trials : {1u, 5u, 64u}) {
        INFO(trials << " trials of " << length);
        CHECK(different(Distribution::uniform, trials, length, uniform_entry) == 0);
        CHECK(different(Distribution::rademacher, trials, length, rademacher_entry) == 0);
        CHECK(different(Distribution::laplace, trials, length, laplace_entry) == 0);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("many trials of any law are those of each trial, scaled alike") {
  for (const Distribution distribution :
       {Distribution::normal, Distribution::uniform, Distribution::rademacher,
        Distribution::laplace, Distribution::student_t}) {
    const EntryLaw law{distribution, 4, 1.7, -0.3};
    constexpr std::size_t kLength = 13;
    std::vector<float> all(5 * kLength), one(kLength);
    fill_entries_trials(all, kLength, law, 2, Stream::sample_q, kFirst);
    for (std::size_t row = 0; row < 5; ++row) {
      fill_entries(one, law, 2, Stream::sample_q, kFirst + row);
      CHECK(std::equal(one.begin(), one.end(), all.data() + row * kLength));
    }
  }
}

}  // namespace
}  // namespace attnlab
