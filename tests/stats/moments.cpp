#include "attnlab/stats/moments.h"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

std::vector<double> draws(std::size_t count, double offset = 0) {
  std::vector<float> normals(count);
  fill_normal(normals, 11, Stream::input_q);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = offset + std::exp(normals[i]);
  return values;
}

// Power sums of the deviations from the mean, in long double and two passes.
std::array<long double, 5> plain_sums(const std::vector<double>& values) {
  long double sum = 0;
  for (const double x : values) sum += x;
  const long double mean = sum / static_cast<long double>(values.size());
  std::array<long double, 5> sums{};
  for (const double x : values) {
    long double power = 1;
    for (long double& s : sums) {
      s += power;
      power *= x - mean;
    }
  }
  sums[1] = mean;
  return sums;
}

TEST_CASE("the variance of 1 2 3 4 is 5/3 by n-1 and 5/4 by n") {
  const Moments m = moments_of(std::array{1.0, 2.0, 3.0, 4.0});
  CHECK(*m.variance() == Approx(5.0 / 3).epsilon(1e-15));
  CHECK(*m.population_variance() == 1.25);
  CHECK(m.count == 4);
  CHECK(m.mean == 2.5);
  CHECK(m.min == 1);
  CHECK(m.max == 4);
  CHECK(*m.mean_std_error() == Approx(std::sqrt(5.0 / 12)).epsilon(1e-15));
  CHECK(*m.skewness() == Approx(0).margin(1e-15));
  CHECK(*m.excess_kurtosis() == Approx(-1.36).epsilon(1e-14));
  // 1.5^4 / (2 (1.5^4 + .5^4)).
  CHECK(*m.largest_fourth_power_share() == Approx(81.0 / 164).epsilon(1e-14));
}

TEST_CASE("a large common offset costs the variance nothing") {
  const Moments m = moments_of(std::array{1e9 + 1, 1e9 + 2, 1e9 + 3});
  CHECK(*m.variance() == 1);
  CHECK(*m.population_variance() == Approx(2.0 / 3).epsilon(1e-15));
}

TEST_CASE("one value has no variance and none has no figure at all") {
  const Moments one = moments_of(std::array{7.0});
  CHECK(!one.variance());
  CHECK(*one.population_variance() == 0);
  CHECK(!one.mean_std_error());
  CHECK(!one.skewness());
  CHECK(!one.excess_kurtosis());
  CHECK(!one.largest_fourth_power_share());
  const Moments none;
  CHECK(!none.variance());
  CHECK(!none.population_variance());
}

TEST_CASE("equal values have variance 0 and no kurtosis") {
  const Moments m = moments_of(std::array{3.0, 3.0, 3.0});
  CHECK(*m.variance() == 0);
  CHECK(!m.skewness());
  CHECK(!m.excess_kurtosis());
}

TEST_CASE("merging 1 2 3 4 with 10 gives mean 4 and variance 12.5") {
  Moments m = moments_of(std::array{1.0, 2.0, 3.0, 4.0});
  m.merge(moments_of(std::array{10.0}));
  CHECK(m.mean == 4);
  CHECK(m.m2 == Approx(50).epsilon(1e-15));
  CHECK(*m.variance() == Approx(12.5).epsilon(1e-15));
  CHECK(m.max == 10);
}

TEST_CASE("one pass and a merge at any place give the sums of a plain double loop") {
  const std::vector<double> values = draws(1000);
  const auto plain = plain_sums(values);
  for (const std::size_t split : {0u, 1u, 2u, 37u, 500u, 999u, 1000u}) {
    const std::span<const double> all(values);
    Moments m = moments_of(all.first(split));
    m.merge(moments_of(all.subspan(split)));
    CHECK(m.count == 1000);
    CHECK(m.mean == Approx(static_cast<double>(plain[1])).epsilon(1e-14));
    CHECK(m.m2 == Approx(static_cast<double>(plain[2])).epsilon(1e-13));
    CHECK(m.m3 == Approx(static_cast<double>(plain[3])).epsilon(1e-13));
    CHECK(m.m4 == Approx(static_cast<double>(plain[4])).epsilon(1e-13));
  }
}

TEST_CASE("an offset of 1e8 leaves the higher moments their digits") {
  const std::vector<double> values = draws(4000, 1e8);
  const auto plain = plain_sums(values);
  const Moments m = moments_of(values);
  CHECK(m.m2 == Approx(static_cast<double>(plain[2])).epsilon(1e-7));
  CHECK(m.m4 == Approx(static_cast<double>(plain[4])).epsilon(1e-6));
}

TEST_CASE("many values at once are added as one after the other, bit for bit") {
  const std::vector<double> values = draws(57);
  Moments one_by_one, at_once;
  for (const double value : values) one_by_one.add(value);
  at_once.add(std::span(values).first(20));
  at_once.add(std::span(values).subspan(20));
  CHECK(at_once == one_by_one);
  at_once.add(std::span<const double>());
  CHECK(at_once == one_by_one);
}

TEST_CASE("merging with an empty sample changes no bit") {
  const Moments m = moments_of(draws(57));
  Moments left = m, right;
  left.merge(Moments{});
  right.merge(m);
  CHECK(left == m);
  CHECK(right == m);
}

TEST_CASE("a NaN among the values makes every figure NaN, wherever it stands") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Moments& m : {moments_of(std::array{nan, 1.0, 2.0}), moments_of(std::array{1.0, nan}),
                           moments_of(std::array{1.0, nan, 2.0})}) {
    CHECK(std::isnan(m.mean));
    CHECK(std::isnan(*m.variance()));
    CHECK(std::isnan(m.min));
    CHECK(std::isnan(m.max));
  }
  Moments merged = moments_of(std::array{1.0, 2.0});
  merged.merge(moments_of(std::array{nan}));
  CHECK(std::isnan(merged.max));
  CHECK(std::isnan(merged.min));
}

TEST_CASE("the state of moments survives as numbers") {
  const Moments m = moments_of(draws(100));
  CHECK(Moments::from_values(m.values()) == m);
  CHECK(Moments::from_values(Moments{}.values()) == Moments{});
}

TEST_CASE("numbers that are no moments are refused") {
  const auto with = [](std::size_t i, double value) {
    auto values = moments_of(std::array{1.0, 2.0}).values();
    values[i] = value;
    return values;
  };
  CHECK_THROWS_AS(Moments::from_values(std::array{1.0, 2.0}), InputError);
  for (const double count : {-1.0, 1.5, 0x1p60, std::nan("")}) {
    CHECK_THROWS_AS(Moments::from_values(with(0, count)), InputError);
  }
  CHECK_THROWS_AS(Moments::from_values(with(0, 0)), InputError);
  CHECK_THROWS_AS(Moments::from_values(with(2, -1)), InputError);
  CHECK_THROWS_AS(Moments::from_values(with(4, -1)), InputError);
  CHECK_THROWS_AS(Moments::from_values(with(5, 3)), InputError);
}

}  // namespace
}  // namespace attnlab
