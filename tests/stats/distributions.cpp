#include "attnlab/stats/distributions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/stats/exact_math.h"
#include "attnlab/stats/moments.h"
#include "attnlab/stats/student_t.h"
#include "catch.h"

namespace attnlab {
namespace {

EntryLaw law_of(Distribution distribution, double nu = 5) {
  EntryLaw law;
  law.distribution = distribution;
  law.nu = nu;
  return law;
}

std::vector<float> draw(const EntryLaw& law, std::size_t count, std::uint64_t seed = 1,
                        std::uint64_t trial = 0, Stream stream = Stream::sample_q) {
  std::vector<float> values(count);
  fill_entries(values, law, seed, stream, trial);
  return values;
}

Moments moments_of_draws(const std::vector<float>& values) {
  Moments sample;
  for (const float x : values) sample.add(x);
  return sample;
}

const std::vector<EntryLaw>& laws() {
  static const std::vector<EntryLaw> all = {
      law_of(Distribution::normal),         law_of(Distribution::uniform),
      law_of(Distribution::rademacher),     law_of(Distribution::laplace),
      law_of(Distribution::student_t, 5),   law_of(Distribution::student_t, 30),
      law_of(Distribution::student_t, 3.5), law_of(Distribution::student_t, 1)};
  return all;
}

// The distribution function of the standard variable.
double cdf(const EntryLaw& law, double x) {
  switch (law.distribution) {
    case Distribution::normal:
      return normal_cdf(x);
    case Distribution::uniform:
      return std::clamp(0.5 + x / (2 * std::sqrt(3.0)), 0.0, 1.0);
    case Distribution::laplace:
      return x < 0 ? 0.5 * std::exp(std::sqrt(2.0) * x) : 1 - 0.5 * std::exp(-std::sqrt(2.0) * x);
    case Distribution::student_t:
      return student_t_cdf(law.nu > 2 ? x / std::sqrt((law.nu - 2) / law.nu) : x, law.nu);
    case Distribution::rademacher:
      break;
  }
  return x < 0 ? 0.5 : 1;
}

// Kolmogorov's statistic exceeds 2.7 for 1 seed in a million.
TEST_CASE("entries follow their distribution function") {
  for (const EntryLaw& law : laws()) {
    if (law.distribution == Distribution::rademacher) continue;
    std::vector<float> values = draw(law, 20000, 5);
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    double distance = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double p = cdf(law, values[i]);
      const auto rank = static_cast<double>(i);
      distance = std::max({distance, p - rank / n, (rank + 1) / n - p});
    }
    INFO(kChoiceNames<Distribution>[static_cast<std::size_t>(law.distribution)] << " " << law.nu);
    CHECK(distance * std::sqrt(n) < 2.7);
  }
}

// Five standard errors, one seed in 400000 each; the kurtosis of the kurtosis is bounded crudely.
TEST_CASE("sigma is the standard deviation and the kurtosis is the law's") {
  for (EntryLaw law : laws()) {
    law.sigma = 1.5;
    law.mean = -0.25;
    if (!law.kurtosis()) continue;
    const Moments sample = moments_of_draws(draw(law, 100000, 9));
    const double n = 100000, k = *law.kurtosis(), variance = *law.variance();
    INFO(kChoiceNames<Distribution>[static_cast<std::size_t>(law.distribution)] << " " << law.nu);
    CHECK(variance == 2.25);
    CHECK(std::fabs(sample.mean - law.mean) < 5 * law.sigma / std::sqrt(n));
    CHECK(std::fabs(*sample.variance() - variance) <= 5 * variance * std::sqrt((k - 1) / n) + 1e-4);
    if (law.distribution != Distribution::student_t) {
      CHECK(std::fabs(*sample.excess_kurtosis() + 3 - k) < 0.01 + 0.1 * (k - 1));
    }
  }
}

TEST_CASE("the kurtosis of each law is its exact figure or nothing") {
  CHECK(*law_of(Distribution::normal).kurtosis() == 3);
  CHECK(*law_of(Distribution::uniform).kurtosis() == 1.8);
  CHECK(*law_of(Distribution::rademacher).kurtosis() == 1);
  CHECK(*law_of(Distribution::laplace).kurtosis() == 6);
  CHECK(*law_of(Distribution::student_t, 5).kurtosis() == 9);
  CHECK(*law_of(Distribution::student_t, 10).kurtosis() == 4);
  CHECK(!law_of(Distribution::student_t, 4).kurtosis());
  CHECK(*law_of(Distribution::student_t, 4).variance() == 1);
  CHECK(*law_of(Distribution::student_t, 2.1).variance() == 1);
  CHECK(!law_of(Distribution::student_t, 2).variance());
}

TEST_CASE("Rademacher entries are the two signs and uniform ones stay within sqrt 3") {
  for (const float x : draw(law_of(Distribution::rademacher), 1000)) CHECK(std::fabs(x) == 1);
  for (const float x : draw(law_of(Distribution::uniform), 1000)) {
    CHECK(std::fabs(x) <= 1.7320509f);
  }
}

// Each transform in long double, from the same bits.
long double exact_standard(const EntryLaw& law, std::uint64_t seed, std::size_t i) {
  const PhiloxCounter bits =
      random_block(seed, Stream::sample_q, 0, static_cast<std::uint32_t>(i / 4));
  const std::uint32_t word = bits[i % 4];
  if (law.distribution == Distribution::uniform) {
    return std::sqrt(3.0L) * (2 * (word + 0.5L) / 4294967296.0L - 1);
  }
  if (law.distribution == Distribution::laplace) {
    const long double u = ((word | 1u) + 0.5L) / 4294967296.0L;
    return ((word & 1u) != 0 ? std::log(u) : -std::log(u)) / std::sqrt(2.0L);
  }
  const PhiloxCounter block =
      random_block(seed, Stream::sample_q, 0, static_cast<std::uint32_t>(i));
  const auto wide = static_cast<std::uint64_t>(block[1]) << 32 | block[0];
  const long double u = (static_cast<long double>(wide) + 0.5L) * 0x1p-64L;
  const long double angle = 2 * std::acos(-1.0L) * (block[2] + 0.5L) * 0x1p-32L;
  const long double nu = law.nu;
  const long double scale = nu > 2 ? std::sqrt((nu - 2) / nu) : 1.0L;
  return scale * std::sqrt(nu * std::expm1(-2 * std::log(u) / nu)) * std::cos(angle);
}

TEST_CASE("entries are within four units in the last place of the exact transform") {
  for (const EntryLaw& law : laws()) {
    if (law.distribution == Distribution::normal || law.distribution == Distribution::rademacher) {
      continue;
    }
    const std::vector<float> values = draw(law, 20000, 77);
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const long double exact = exact_standard(law, 77, i);
      const double unit = std::ldexp(1.0, std::ilogb(static_cast<double>(exact)) - 23);
      worst = std::max(worst, static_cast<double>(std::fabs(values[i] - exact)) / unit);
    }
    INFO(kChoiceNames<Distribution>[static_cast<std::size_t>(law.distribution)] << " " << law.nu);
    CHECK(worst < 4);
    CHECK(worst > 0.4);  // the reference is no copy
  }
}

TEST_CASE("entries of every law have the same bits everywhere") {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over the bit patterns
  for (const EntryLaw& law : laws()) {
    for (const float value : draw(law, 5000, 123, 456)) {
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
    }
  }
  CHECK(hash == 0xf58a3f19ef192bd7);
}

TEST_CASE("an entry depends on seed, stream, trial and index alone") {
  for (const EntryLaw& law : laws()) {
    const std::vector<float> all = draw(law, 103, 5, 8);
    for (const std::size_t count : {0u, 1u, 3u, 4u, 102u}) {
      const std::vector<float> some = draw(law, count, 5, 8);
      CHECK(std::equal(some.begin(), some.end(), all.begin()));
    }
    CHECK(draw(law, 103, 6, 8) != all);
    CHECK(draw(law, 103, 5, 9) != all);
    CHECK(draw(law, 103, 5, 8, Stream::sample_k) != all);
  }
}

TEST_CASE("the logarithm and exponential keep their digits near 1 and 0") {
  for (const std::uint64_t bits :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40, std::uint64_t{1} << 62,
        std::uint64_t{0x5a827999fcef3242}, std::uint64_t{0xb504f333f9de6484},
        std::uint64_t{0x7fffffffffffffff}, std::uint64_t{0x8000000000000000},
        std::uint64_t{0xffffffff00000000}, std::uint64_t{0xffffffffffffffff}}) {
    const long double above = (static_cast<long double>(~bits) + 0.5L) * 0x1p-64L;
    const long double below = (static_cast<long double>(bits) + 0.5L) * 0x1p-64L;
    const long double exact = above < below ? std::log1p(-above) : std::log(below);
    CHECK(std::fabs(log_uniform64(bits) / exact - 1) < 0x1p-51L);
  }
  for (const double a :
       {1e-300, 1e-20, 1e-5, 0.1, 0.34657, 0.34658, 0.5, 1.0, 1.0397, 10.0, 90.0, 700.0}) {
    CHECK(std::fabs(exp_minus_one(a) / std::expm1(static_cast<long double>(a)) - 1) < 0x1p-51L);
  }
  CHECK(exp_minus_one(0) == 0);
}

TEST_CASE("equicorrelated entries have that correlation, their sum the variance it implies") {
  constexpr std::size_t kD = 8;
  for (const double rho : {0.5, -1.0 / 7, 1.0, 0.0}) {
    Moments first, sum, product;
    for (std::uint64_t trial = 0; trial < 20000; ++trial) {
      std::vector<float> x = draw(law_of(Distribution::uniform), kD, 3, trial);
      equicorrelate(x, rho);
      double total = 0;
      for (const float entry : x) total += entry;
      first.add(x[0]);
      sum.add(total);
      product.add(static_cast<double>(x[0]) * x[5]);
    }
    INFO("rho " << rho);
    // Five standard errors of figures whose deviation is below 2.
    CHECK(std::fabs(*first.variance() - 1) < 0.05);
    CHECK(std::fabs(product.mean - rho) < 0.05);
    CHECK(std::fabs(*sum.variance() - 8 * (1 + 7 * rho)) < 0.05 * (1 + 8 * (1 + 7 * rho)));
  }
}

TEST_CASE("keys correlate with queries of the same index only") {
  const std::vector<float> q = draw(law_of(Distribution::normal), 20000, 4);
  std::vector<float> k = draw(law_of(Distribution::normal), 20000, 4, 0, Stream::sample_k);
  const std::vector<float> own = k;
  correlate_with(k, q, 0);
  CHECK(k == own);
  correlate_with(k, q, -0.6);
  double same = 0, next = 0, square = 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    same += static_cast<double>(q[i]) * k[i] / 20000;
    next += static_cast<double>(q[i]) * k[i ^ 1] / 20000;
    square += static_cast<double>(k[i]) * k[i] / 20000;
  }
  CHECK(std::fabs(same + 0.6) < 0.05);
  CHECK(std::fabs(next) < 0.05);
  CHECK(std::fabs(square - 1) < 0.06);
  correlate_with(k, q, 1);
  CHECK(k == q);
}

TEST_CASE("laws, correlations and lengths that cannot be are refused") {
  const auto check = [](auto change) {
    EntryLaw law = law_of(Distribution::student_t);
    change(law);
    law.check();
  };
  check([](EntryLaw&) {});
  CHECK_THROWS_AS(check([](EntryLaw& law) { law.sigma = 0; }), InputError);
  CHECK_THROWS_AS(check([](EntryLaw& law) { law.sigma = std::nan(""); }), InputError);
  CHECK_THROWS_AS(check([](EntryLaw& law) { law.mean = INFINITY; }), InputError);
  CHECK_THROWS_AS(check([](EntryLaw& law) { law.nu = 0.5; }), InputError);
  CHECK_THROWS_AS(check([](EntryLaw& law) { law.nu = std::nan(""); }), InputError);
  std::vector<float> x(4), y(4);
  CHECK_THROWS_AS(equicorrelate(x, 1.1), InputError);
  CHECK_THROWS_AS(equicorrelate(x, -0.34), InputError);
  CHECK_THROWS_AS(correlate_with(x, y, 1.5), InputError);
  const std::span<float> huge(static_cast<float*>(nullptr), (std::size_t{1} << 34) + 1);
  for (const EntryLaw& law : laws()) {
    CHECK_THROWS_AS(fill_standard(huge, law, 0, Stream::sample_q, 0), InputError);
  }
}

}  // namespace
}  // namespace attnlab
