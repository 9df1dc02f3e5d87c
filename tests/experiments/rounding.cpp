#include "attnlab/experiments/rounding.h"

#include <cmath>
#include <limits>

#include "catch.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("units in the last place are counted in the dtype that is asked for") {
  CHECK(ulps_between(1, 1 + 0x1p-52, DType::float64) == 1);
  CHECK(ulps_between(1, 1 - 0x1p-52, DType::float64) == 2);  // numbers below 1 are twice as dense
  CHECK(ulps_between(1, 1 + 0x1p-23, DType::float32) == 1);
  CHECK(ulps_between(1, 1 + 3 * 0x1p-10, DType::float16) == 3);
  CHECK(ulps_between(1, 1 + 5 * 0x1p-7, DType::bfloat16) == 5);
  CHECK(ulps_between(2, 4, DType::float32) == 0x1p23);
  CHECK(ulps_between(-3, -3, DType::float16) == 0);
}

TEST_CASE("both numbers are rounded to the dtype first") {
  CHECK(ulps_between(1, 1 + 0x1p-26, DType::float32) == 0);
  CHECK(ulps_between(1 + 0x1p-8, 1 + 0x1.8p-8, DType::bfloat16) == 1);  // to even, and up
  CHECK(ulps_between(0.1, static_cast<double>(0.1f), DType::float32) == 0);
  CHECK(ulps_between(0.1, static_cast<double>(0.1f), DType::float64) > 1e6);
}

TEST_CASE("zero has one place among the numbers, and infinity is the next of the largest") {
  CHECK(ulps_between(0, -0.0, DType::float32) == 0);
  CHECK(ulps_between(5e-324, -5e-324, DType::float64) == 2);
  CHECK(ulps_between(0x1p-24, 0, DType::float16) == 1);  // the smallest of float16
  CHECK(ulps_between(65504, kInfinity, DType::float16) == 1);
  CHECK(ulps_between(65504, 1e300, DType::float16) == 1);
  CHECK(ulps_between(-kInfinity, kInfinity, DType::float16) == 2 * 0x7c00);
  CHECK(ulps_between(-kInfinity, kInfinity, DType::float64) == 2.0 * 0x7ff0000000000000);
}

TEST_CASE("the narrower dtype has fewer digits, not fewer bytes or a smaller range") {
  CHECK(narrower(DType::float16, DType::bfloat16) == DType::bfloat16);
  CHECK(narrower(DType::bfloat16, DType::float16) == DType::bfloat16);
  CHECK(narrower(DType::float64, DType::float32) == DType::float32);
  CHECK(narrower(DType::float32, DType::float16) == DType::float16);
  CHECK(narrower(DType::float32, DType::int8) == DType::float32);
}

}  // namespace
}  // namespace attnlab
