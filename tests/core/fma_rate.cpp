#include "attnlab/core/fma_rate.h"

#include <cmath>

#include "catch.h"

namespace attnlab {
namespace {

TEST_CASE("the rate of multiply-adds is one of a processor, on any number of threads") {
  for (const Index threads : {0, 1, 2, 5}) {
    const double rate = fma_rate(threads);
    INFO(threads << " threads: " << rate);
    CHECK(std::isfinite(rate));
    // Operations a second, not a millisecond or in units of 10^9: even an emulated processor does
    // more, and no core does as many.
    CHECK(rate > 1e6);
    CHECK(rate < 1e14);
  }
}

}  // namespace
}  // namespace attnlab
