#include "attnlab/attention/kernel/largest_magnitude.h"

#include <hwy/targets.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace attnlab {
namespace {

// Wherever in a row it stands: in the vectors that are taken several at once, alone or not at all.
template <class T>
void check_every_place(T value, T expected) {
  for (std::size_t count = 1; count < 70; ++count) {
    std::vector<T> row(count, T(-0.5));
    for (std::size_t at = 0; at < count; ++at) {
      row[at] = value;
      const T found = largest_magnitude(std::span<const T>(row));
      INFO(value << " at " << at << " of " << count);
      CHECK(((std::isnan(expected) && std::isnan(found)) || found == expected));
      row[at] = T(-0.5);
    }
  }
}

template <class T>
void check_all() {
  using Limits = std::numeric_limits<T>;
  CHECK(largest_magnitude(std::span<const T>()) == 0);
  check_every_place<T>(-3, 3);
  check_every_place<T>(2, 2);
  check_every_place<T>(Limits::lowest(), Limits::max());
  check_every_place<T>(-Limits::infinity(), Limits::infinity());
  check_every_place<T>(Limits::quiet_NaN(), Limits::quiet_NaN());
  check_every_place<T>(-Limits::quiet_NaN(), Limits::quiet_NaN());
}

TEST_CASE("the largest magnitude is found wherever it stands, on every target of the processor") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    check_all<float>();
    check_all<double>();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace attnlab
