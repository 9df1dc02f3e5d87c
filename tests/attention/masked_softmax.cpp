#include "attnlab/attention/kernel/masked_softmax.h"

#include "attention/attention_test.h"

namespace attnlab {
namespace {

TEST_CASE("a key that is not seen has weight 0 and no say, whatever its score") {
  const double e = std::exp(1.0);
  for (const double hidden : {test::kNan, test::kInfinity, 1e300, -test::kInfinity}) {
    std::vector<double> row = {hidden, 1, hidden, 2};
    const std::vector<std::uint8_t> seen = {0, 1, 0, 1};
    masked_softmax<double>(row, seen);
    CHECK(row[0] == 0);
    CHECK(row[1] == Approx(1 / (1 + e)));
    CHECK(row[2] == 0);
    CHECK(row[3] == Approx(e / (1 + e)));
    masked_softmax<double>(row, std::vector<std::uint8_t>(4, 0));
    CHECK(row == std::vector<double>(4, 0));
  }
}

TEST_CASE("the sum of a long float32 row does not drift") {
  // In float32, adding .3 to a sum of 10^5 loses a hundredth of it each time.
  const std::size_t m = 400'000;
  std::vector<float> row(m, std::log(.3f));
  row[0] = 0;
  masked_softmax<float>(row, {});
  CHECK(row[0] == Approx(1 / (1 + .3 * static_cast<double>(m - 1))).epsilon(1e-6));
}

}  // namespace
}  // namespace attnlab
