// Normals drawn in vectors have the bits of normals_of, on every target of the processor.

#include <hwy/targets.h>

#include <bit>
#include <limits>
#include <vector>

#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

// Elements of [trials, length] that are not normals_of the block they belong to.
int different(std::size_t trials, std::size_t length, std::uint64_t seed, Stream stream,
              std::uint64_t first_trial) {
  std::vector<float> values(trials * length);
  fill_normal_trials(values, length, seed, stream, first_trial);
  int count = 0;
  for (std::size_t row = 0; row < trials; ++row) {
    for (std::size_t i = 0; i < length; ++i) {
      const auto block = static_cast<std::uint32_t>(i / 4);
      const float expected =
          normals_of(random_block(seed, stream, first_trial + row, block))[i % 4];
      const float value = values[row * length + i];
      if (std::bit_cast<std::uint32_t>(value) != std::bit_cast<std::uint32_t>(expected)) ++count;
    }
  }
  return count;
}

template <class Check>
void on_every_target(const Check& check) {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  CHECK_FALSE(targets.empty());
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("one trial has the same normals in vectors, whatever its length") {
  on_every_target([] {
    for (const std::size_t length :
         {1u,  2u,  3u,   4u,   5u,   7u,   8u,   31u,   32u,   33u,
          63u, 64u, 100u, 959u, 960u, 961u, 964u, 1023u, 5000u, 100003u}) {
      INFO(length);
      CHECK(different(1, length, 77, Stream::input_q, 3) == 0);
    }
  });
}

TEST_CASE("many trials at once have the normals of each, across 2^32 and 2^64 trials too") {
  on_every_target([] {
    for (const std::size_t length :
         {1u, 2u, 3u, 4u, 5u, 8u, 12u, 17u, 20u, 64u, 67u, 300u, 1028u}) {
      for (const std::size_t trials : {2u, 3u, 9u, 64u, 301u}) {
        for (const std::uint64_t first :
             {std::uint64_t{0}, (std::uint64_t{1} << 32) - 2, kLargest - 1}) {
          INFO(length << " values of each of " << trials << " trials from " << first);
          CHECK(different(trials, length, 1, Stream::sample_k, first) == 0);
        }
      }
    }
  });
}

TEST_CASE("every word of the counter and the key reaches the normals in vectors") {
  on_every_target([] {
    for (std::uint32_t role = 1; role <= static_cast<std::uint32_t>(Stream::sample_weight_k);
         ++role) {
      for (const std::uint64_t point : {0u, 16777215u}) {
        for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1} << 32, kLargest}) {
          const Stream stream = stream_at(static_cast<Stream>(role), point);
          CHECK(different(5, 13, seed, stream, std::uint64_t{0x12345678} << 24) == 0);
        }
      }
    }
  });
}

TEST_CASE("trials of no values, and no trials, are nothing to draw") {
  std::vector<float> none;
  fill_normal_trials(none, 0, 0, Stream::input_q, 0);
  fill_normal_trials(none, 5, 0, Stream::input_q, 0);
  CHECK(none.empty());
}

}  // namespace
}  // namespace attnlab
