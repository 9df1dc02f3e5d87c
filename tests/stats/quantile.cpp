#include "attnlab/stats/quantile.h"

#include <cmath>
#include <limits>

#include "attnlab/core/error.h"
#include "catch.h"

namespace attnlab {
namespace {

// numpy.quantile([3, 1, 4, 1, 5, 9, 2, 6], ...).
TEST_CASE("quantiles interpolate the order statistics as Hyndman and Fan's type 7") {
  const SortedSample sample({3, 1, 4, 1, 5, 9, 2, 6});
  CHECK(*sample.quantile(0) == 1);
  CHECK(*sample.quantile(1) == 9);
  CHECK(*sample.median() == 3.5);
  CHECK(*sample.quantile(0.25) == 1.75);
  CHECK(*sample.quantile(0.75) == 5.25);
  CHECK(*sample.quantile(0.9) == Approx(6.9).epsilon(1e-15));
  CHECK(*sample.interquartile_range() == 3.5);
  // Distances from 3.5: .5 .5 1.5 1.5 2.5 2.5 2.5 5.5.
  CHECK(*sample.median_absolute_deviation() == 2);
}

TEST_CASE("a sample of one is its own quantiles and an empty one has none") {
  const SortedSample one({2.5});
  for (const double p : {0.0, 0.3, 1.0}) CHECK(*one.quantile(p) == 2.5);
  CHECK(*one.interquartile_range() == 0);
  const SortedSample none({});
  CHECK(!none.median());
  CHECK(!none.interquartile_range());
  CHECK(!none.median_absolute_deviation());
}

TEST_CASE("infinite values keep their rank and a NaN leaves no quantile defined") {
  const double inf = std::numeric_limits<double>::infinity();
  const SortedSample infinite({inf, 1, inf, inf});
  CHECK(*infinite.quantile(0) == 1);
  CHECK(*infinite.median() == inf);
  CHECK(std::isnan(*SortedSample({1, std::nan(""), 3}).median()));
}

TEST_CASE("a median by selection is that of the sorted sample") {
  const double inf = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& values : {std::vector<double>{2.5},
                                            {4, 1},
                                            {3, 1, 2},
                                            {3, 1, 4, 1, 5, 9, 2, 6},
                                            {5, 5, 1, 5, 9, 0.1},
                                            {inf, 1, inf, inf},
                                            {-inf, inf, 3, 3.1},
                                            {7, 6, 5, 4, 3, 2, 1},
                                            {0.1, 0.3, 0.2, 0.7}}) {
    CHECK(*median_of(values) == *SortedSample(values).median());
  }
  CHECK_FALSE(median_of({}));
  CHECK(std::isnan(*median_of({1, std::nan(""), 3})));
}

TEST_CASE("a probability outside 0 to 1 is refused") {
  const SortedSample sample({1, 2});
  for (const double p : {-0.1, 1.1, std::nan("")}) {
    CHECK_THROWS_AS(sample.quantile(p), InputError);
  }
}

}  // namespace
}  // namespace attnlab
