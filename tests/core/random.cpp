#include "attnlab/core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <vector>

#include "attnlab/core/error.h"
#include "catch.h"

namespace attnlab {
namespace {

std::vector<float> normals(std::size_t count, std::uint64_t seed, Stream stream = Stream::input_q,
                           std::uint64_t trial = 0) {
  std::vector<float> out(count);
  fill_normal(out, seed, stream, trial);
  return out;
}

// The Box-Muller pair of two words in long double.
std::array<long double, 2> exact_pair(std::uint32_t word0, std::uint32_t word1) {
  constexpr long double kPi = std::numbers::pi_v<long double>;
  const long double below = (static_cast<long double>(word0) + 0.5L) * 0x1p-32L;
  const long double above = (static_cast<long double>(~word0) + 0.5L) * 0x1p-32L;
  const long double log_u = below < above ? std::log(below) : std::log1p(-above);
  const long double radius = std::sqrt(-2 * log_u);
  // Eighths of a turn first, so that sine and cosine see a small angle.
  const std::uint32_t quarter = (word1 + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(word1 - (quarter << 30));
  const long double angle = (static_cast<long double>(rest) + 0.5L) * 0x1p-31L * kPi;
  const long double c = std::cos(angle), s = std::sin(angle);
  switch (quarter & 3) {
    case 0:
      return {radius * c, radius * s};
    case 1:
      return {-radius * s, radius * c};
    case 2:
      return {-radius * c, -radius * s};
    default:
      return {radius * s, -radius * c};
  }
}

double units_in_the_last_place(float value, long double exact) {
  const int exponent = std::ilogb(static_cast<double>(exact));
  return static_cast<double>(std::fabs(value - exact)) / std::ldexp(1.0, exponent - 23);
}

double worst_error(const PhiloxCounter& bits) {
  const std::array<float, 4> values = normals_of(bits);
  double worst = 0;
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const auto exact = exact_pair(bits[pair], bits[pair + 1]);
    worst = std::max({worst, units_in_the_last_place(values[pair], exact[0]),
                      units_in_the_last_place(values[pair + 1], exact[1])});
  }
  return worst;
}

// The values are those of Box-Muller in 30 digits; the bits are this library's for ever.
TEST_CASE("the first normals of seed 0 are these, bit for bit") {
  const std::vector<float> values = normals(8, 0);
  const std::array<std::uint32_t, 8> bits = {0x3fd359cb, 0x3f587c3a, 0xbdd11911, 0xbdecd29d,
                                             0xbe33312a, 0x3ec97c3a, 0xbf8c79bf, 0xbf54894d};
  const std::array<double, 8> exact = {1.65117788195,   0.845645558116,  -0.102098595163,
                                       -0.115636089015, -0.174992238858, 0.393525882956,
                                       -1.09746545207,  -0.830220053488};
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(std::bit_cast<std::uint32_t>(values[i]) == bits[i]);
    CHECK(values[i] == Approx(exact[i]).epsilon(2.5e-7));
  }
}

TEST_CASE("a hundred thousand normals have the same bits everywhere") {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over the bit patterns
  for (const float value : normals(100000, 12345, Stream::input_k, 7)) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
  }
  CHECK(hash == 0x8e5ac28025be3862);
}

TEST_CASE("normals are within four units in the last place of the exact transform") {
  double worst = 0;
  for (std::uint32_t block = 0; block < 200000; ++block) {
    worst = std::max(worst, worst_error(random_block(7, Stream::input_q, 3, block)));
  }
  // Where the transform changes its branch: 0, powers of two, sqrt(1/2), 1/2 and 1 of the range.
  for (const std::uint32_t edge :
       {0u, 0x20000000u, 0x40000000u, 0x5a82799au, 0x80000000u, 0xb504f333u, 0xe0000000u}) {
    for (std::uint32_t i = 0; i < 4096; ++i) {
      const std::uint32_t word = edge + i - 2048;
      const std::uint32_t other = 0x9E3779B9u * i;
      worst = std::max(worst, worst_error({word, other, other, word}));
    }
  }
  CHECK(worst < 4);
  CHECK(worst > 1);  // the reference is no copy
}

TEST_CASE("the radius reaches from 2^-16 to the square root of 2 ln 2^33") {
  const float longest = std::hypot(normals_of({0, 0, 0, 0})[0], normals_of({0, 0, 0, 0})[1]);
  CHECK(longest == Approx(std::sqrt(66 * std::numbers::ln2)).epsilon(1e-6));
  const std::uint32_t ones = 0xffffffff;
  const auto shortest = normals_of({ones, 0, ones, 0});
  CHECK(std::hypot(shortest[0], shortest[1]) == Approx(0x1p-16).epsilon(1e-6));
}

// Tolerances are five standard errors of each moment of N draws: a right generator fails one of
// the four for 1 seed in 400000.
TEST_CASE("the moments of a million normals are those of the normal distribution") {
  constexpr std::size_t kCount = std::size_t{1} << 20;
  std::array<double, 5> sums{};
  double lag_product = 0;
  const std::vector<float> values = normals(kCount, 2024);
  for (std::size_t i = 0; i < kCount; ++i) {
    const double x = values[i];
    double power = 1;
    for (double& sum : sums) {
      sum += power;
      power *= x;
    }
    lag_product += x * values[i ^ 1];  // the other half of its pair
  }
  const double n = kCount;
  CHECK(std::fabs(sums[1] / n) < 5 * std::sqrt(1 / n));
  CHECK(std::fabs(sums[2] / n - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::fabs(sums[3] / n) < 5 * std::sqrt(15 / n));
  CHECK(std::fabs(sums[4] / n - 3) < 5 * std::sqrt(96 / n));
  // Each product stands twice in the sum.
  CHECK(std::fabs(lag_product / n) < 5 * std::sqrt(2 / n));
}

// Kolmogorov's statistic exceeds 2.7 for 1 seed in a million.
TEST_CASE("the distribution function of a million normals is the normal one") {
  std::vector<float> values = normals(std::size_t{1} << 20, 99);
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double phi = 0.5 * std::erfc(-values[i] / std::numbers::sqrt2);
    distance = std::max(
        {distance, phi - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - phi});
  }
  CHECK(distance * std::sqrt(n) < 2.7);
}

TEST_CASE("an element does not depend on how many are drawn") {
  const std::vector<float> all = normals(103, 5);
  for (const std::size_t count : {0u, 1u, 2u, 3u, 4u, 5u, 102u}) {
    const std::vector<float> some = normals(count, 5);
    CHECK(std::equal(some.begin(), some.end(), all.begin()));
  }
  std::vector<double> uniforms(7), fewer(3);
  fill_uniform(uniforms, 5, Stream::dropout, 1);
  fill_uniform(fewer, 5, Stream::dropout, 1);
  CHECK(std::equal(fewer.begin(), fewer.end(), uniforms.begin()));
}

TEST_CASE("seeds, streams and trials do not share their bits") {
  CHECK(random_block(1, Stream::input_q, 1, 0) != random_block(2, Stream::input_q, 0, 0));
  std::set<PhiloxCounter> blocks;
  std::size_t count = 0;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (int stream = 1; stream <= static_cast<int>(Stream::sample_weight_k); ++stream) {
      for (const std::uint64_t trial :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
        for (const std::uint32_t block : {0u, 1u, 2u}) {
          blocks.insert(random_block(seed, static_cast<Stream>(stream), trial, block));
          ++count;
        }
      }
    }
  }
  CHECK(blocks.size() == count);
}

TEST_CASE("no two roles and points of an experiment have the same stream") {
  std::set<std::uint32_t> streams;
  std::size_t count = 0;
  for (std::uint32_t role = 0; role <= static_cast<std::uint32_t>(Stream::sample_weight_k);
       ++role) {
    for (const std::uint64_t point : {0u, 1u, 2u, 255u, 256u, 65535u, 65536u, 16777215u}) {
      streams.insert(static_cast<std::uint32_t>(stream_at(static_cast<Stream>(role), point)));
      ++count;
    }
  }
  CHECK(streams.size() == count);
  CHECK(stream_at(Stream::sample_q, 0) == Stream::sample_q);
  CHECK_THROWS_AS(stream_at(Stream::sample_q, std::uint64_t{1} << 24), InputError);
}

TEST_CASE("the parts of the normal transform are those of the transform") {
  for (const std::uint32_t word : {0u, 1u, 0x40000000u, 0x7fffffffu, 0xdeadbeefu, 0xffffffffu}) {
    const float radius = std::sqrt(-2.0f * log_uniform_of(word));
    CHECK(normals_of({word, 0x12345678, 0, 0})[0] == radius * cosine_of_turn(0x12345678));
  }
}

// The correlation of N pairs of independent normals has standard error 1 / sqrt(N): five of them
// are exceeded for one of the four with one seed in 400000.
TEST_CASE("neighbouring seeds, streams and trials are not correlated") {
  constexpr std::size_t kCount = 1 << 18;
  const std::vector<float> base = normals(kCount, 1, Stream::input_q, 0);
  for (const std::vector<float>& other :
       {normals(kCount, 2, Stream::input_q, 0), normals(kCount, 1, Stream::input_k, 0),
        normals(kCount, 1, Stream::input_q, 1), normals(kCount, 2, Stream::input_q, 1)}) {
    double sum = 0;
    for (std::size_t i = 0; i < kCount; ++i) sum += static_cast<double>(base[i]) * other[i];
    CHECK(std::fabs(sum / kCount) < 5 / std::sqrt(static_cast<double>(kCount)));
  }
}

TEST_CASE("uniforms lie inside the open interval and use all 32 bits") {
  CHECK(uniform_of(0) == 0x1p-33);
  CHECK(uniform_of(0xffffffff) == 1 - 0x1p-33);
  std::vector<double> values(4);
  fill_uniform(values, 3, Stream::weight_q, 9);
  const PhiloxCounter bits = random_block(3, Stream::weight_q, 9, 0);
  for (std::size_t i = 0; i < 4; ++i) CHECK(values[i] == (bits[i] + 0.5) / 4294967296.0);
}

TEST_CASE("more values than a trial has are refused before the first is drawn") {
  const std::span<float> huge(static_cast<float*>(nullptr), (std::size_t{1} << 34) + 1);
  CHECK_THROWS_AS(fill_normal(huge, 0, Stream::input_q), InputError);
}

}  // namespace
}  // namespace attnlab
