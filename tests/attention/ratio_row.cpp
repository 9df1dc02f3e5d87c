// The metrics of a row against the definitions in long double, and the same bits on every target of
// the processor.

#include "attnlab/attention/ratio_row.h"

#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

RatioRow row_of(const std::vector<double>& logits) {
  RatioRow row;
  row.set_logits(logits);
  return row;
}

std::vector<double> normals(std::size_t n, double deviation, std::uint64_t trial) {
  std::vector<float> values(n);
  fill_normal(values, 19, Stream::input_x, trial);
  std::vector<double> row;
  for (const float z : values) row.push_back(deviation * static_cast<double>(z));
  return row;
}

// Everything that a row says, in one list.
std::vector<double> all_of(const RatioRow& row) {
  const SoftmaxMetrics metrics = row.metrics();
  return {row.max_weight(),
          row.rest(),
          row.total(),
          row.gap(),
          metrics.max_weight,
          metrics.sum_squares,
          metrics.entropy,
          metrics.trace,
          metrics.frobenius,
          metrics.frobenius_squared,
          row.largest_eigenvalue()};
}

// The largest eigenvalue of J in units of s_m, where sum rho / (x - rho) = 1 / (1 - x), by
// bisection.
long double plain_eigenvalue(const std::vector<long double>& ratios) {
  long double low = *std::max_element(ratios.begin(), ratios.end()), high = 1;
  // The ends move as quotients: a root may be tiny.
  high = std::min(high, 2 * low * static_cast<long double>(ratios.size()));
  for (int i = 0; i < 200; ++i) {
    const long double x = low + (high - low) / 2;
    if (x <= low || x >= high) break;
    long double sum = 0;
    for (const long double rho : ratios) sum += rho / (x - rho);
    (1 / sum + (x - 1) < 0 ? low : high) = x;
  }
  return low;
}

// all_of in long double, with nothing left out that is small.
std::vector<long double> plain(const std::vector<double>& logits) {
  std::vector<long double> z(logits.begin(), logits.end());
  const auto m = std::max_element(z.begin(), z.end()) - z.begin();
  const long double largest = z[static_cast<std::size_t>(m)];
  z.erase(z.begin() + m);
  std::vector<long double> rho;
  long double sum = 0, surprise = 0, s2 = 0, second = -INFINITY;
  for (long double& value : z) {
    value -= largest;
    second = std::max(second, value);
    rho.push_back(std::exp(value));
    sum += rho.back();
    surprise -= rho.back() > 0 ? rho.back() * value : 0;
  }
  const long double total = 1 + sum, s_m = 1 / total, r = sum / total;
  long double trace = s_m * r, f2 = s_m * r * s_m * r;
  for (std::size_t i = 0; i < rho.size(); ++i) {
    const long double o = rho[i] / total;
    s2 += o * o;
    trace += o * (1 - o);
    f2 += o * (1 - o) * o * (1 - o) + 2 * s_m * o * s_m * o;
    for (std::size_t j = 0; j < rho.size(); ++j) {
      if (j != i) f2 += o * o * (rho[j] / total) * (rho[j] / total);
    }
  }
  return {s_m,
          r,
          total,
          z.empty() ? 0 : -second,
          s_m,
          s_m * s_m + s2,
          std::log1p(sum) + surprise / total,
          trace,
          std::sqrt(f2),
          f2,
          z.empty() ? 0 : plain_eigenvalue(rho) * s_m};
}

// The largest relative error, in units of 2^-53; of what is subnormal none.
double largest_error(const std::vector<double>& logits) {
  const std::vector<double> got = all_of(row_of(logits));
  const std::vector<long double> exact = plain(logits);
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::abs(exact[i]) < 0x1p-1021L) continue;
    const auto error = static_cast<double>(std::abs(got[i] / exact[i] - 1));
    largest = std::max(largest, error * 0x1p53);
    if (std::isnan(got[i])) largest = kInfinity;
  }
  return largest;
}

std::vector<std::vector<double>> rows() {
  std::vector<std::vector<double>> list = {{7},
                                           {0, 0},
                                           {3, 1},
                                           {2, 2, -50},
                                           {0, 0, 0, -1},
                                           {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                           {0, -1e-9, -2e-9, -3},
                                           {0, -1e-15},
                                           {0, -1e-15, -1e-15, -5, -5, -6, -7, -8, -9},
                                           {-600, 0, -601},
                                           {0, -300, -300.5, -301, -330, -400},
                                           {400, 0.5, 1, -250, -299, 2, 3, 4, 5, 6},
                                           {1e5, -1e5, 3, 1e5 - 1},
                                           {-1e300, 1e300, 7},
                                           {0, -690, -700, -690}};
  std::uint64_t trial = 0;
  for (const std::size_t n : {2u, 3u, 7u, 8u, 9u, 16u, 31u, 64u, 100u, 512u}) {
    for (const double deviation : {0.0, 1e-8, 0.1, 1.0, 2.0, 4.0, 8.0, 30.0, 100.0}) {
      list.push_back(normals(n, deviation, ++trial));
    }
  }
  return list;
}

TEST_CASE("what ratios say of a row has the digits of the definitions") {
  for (const std::vector<double>& logits : rows()) {
    INFO(logits.size() << " logits, the first " << logits[0]);
    // 1e-14 is 90 of these units.
    CHECK(largest_error(logits) < 12);
  }
}

TEST_CASE("a row has the same bits on every target") {
  const auto list = rows();
  std::vector<std::vector<double>> first(list.size());
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::vector<double> got = all_of(row_of(list[i]));
      if (first[i].empty()) first[i] = got;
      for (std::size_t j = 0; j < got.size(); ++j) {
        CHECK(std::bit_cast<std::uint64_t>(got[j]) == std::bit_cast<std::uint64_t>(first[i][j]));
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("logits are multiplied by their factor first") {
  const std::vector<double> scores = normals(21, 3, 1000);
  std::vector<double> logits;
  for (const double score : scores) logits.push_back(0.3 * score);
  RatioRow row;
  row.set_logits(scores, 0.3);
  CHECK(all_of(row) == all_of(row_of(logits)));
  CHECK(row.range().highest == *std::max_element(logits.begin(), logits.end()));
  CHECK(row.range().lowest == *std::min_element(logits.begin(), logits.end()));
}

TEST_CASE("the first of the largest logits is the argmax, wherever it stands") {
  for (std::size_t n = 1; n < 20; ++n) {
    for (std::size_t m = 0; m < n; ++m) {
      std::vector<double> logits(n, -1);
      logits[m] = 2;
      logits.back() = 2;
      CHECK(row_of(logits).argmax() == m);
    }
  }
}

TEST_CASE("a logit of minus infinity takes no part in what ratios say") {
  const RatioRow with = row_of({1, -kInfinity, 2, 0.5});
  CHECK(all_of(with) == all_of(row_of({1, 2, 0.5})));
  CHECK_FALSE(with.range().finite);
}

TEST_CASE("rows without a finite logit, without one at all and with NaN among the ratios") {
  for (const auto& logits : {std::vector<double>{}, {-kInfinity, -kInfinity}}) {
    const RatioRow row = row_of(logits);
    CHECK(row.max_weight() == 0);
    CHECK(row.metrics().entropy == 0);
    CHECK(row.metrics().frobenius == 0);
    CHECK(row.largest_eigenvalue() == 0);
  }
  for (const auto& logits : {std::vector<double>{1, kNotANumber, 3, 2, 2, 2, 2, 2, 2},
                             {2, 2, 2, 2, 2, 2, 2, 2, kNotANumber},
                             {1, kInfinity},
                             {kInfinity, -kInfinity}}) {
    for (const double value : all_of(row_of(logits))) CHECK(std::isnan(value));
  }
}

TEST_CASE("a row of ratios set again forgets the row before") {
  RatioRow row;
  row.set_logits(std::vector<double>{kNotANumber, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  row.set_logits(std::vector<double>{1, 2});
  CHECK(all_of(row) == all_of(row_of({1, 2})));
}

TEST_CASE("small ratios are all but the largest that are at most the limit") {
  for (const std::size_t n : {1u, 2u, 5u, 8u, 9u, 70u}) {
    const std::vector<double> logits = normals(n, 2, n);
    const double highest = *std::max_element(logits.begin(), logits.end());
    for (const double limit : {0.0, 0.01, 0.2, 1.0, kInfinity}) {
      std::vector<double> memory, expected;
      RatioRow row = row_of(logits);
      const std::vector<double> before = all_of(row);
      const std::span<const double> small = row.small_ratios(limit, memory);
      CHECK(all_of(row) == before);
      for (const double z : logits) {
        if (z != highest && std::exp(z - highest) <= limit)
          expected.push_back(std::exp(z - highest));
      }
      REQUIRE(small.size() == expected.size());
      for (std::size_t i = 0; i < small.size(); ++i) {
        CHECK(small[i] == Approx(expected[i]).epsilon(1e-15));
      }
    }
  }
}

}  // namespace
}  // namespace attnlab
