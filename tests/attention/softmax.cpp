#include "attnlab/attention/softmax.h"

#include <cmath>
#include <limits>
#include <vector>

#include "attnlab/core/random.h"
#include "attnlab/core/tensor.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

template <class T>
using RowFunction = void (*)(std::span<const T>, std::span<T>, double);

// f of the row rounded to T, as doubles.
template <class T>
std::vector<double> apply(RowFunction<T> f, const std::vector<double>& logits,
                          double temperature = 1) {
  std::vector<T> in, out(logits.size());
  for (const double z : logits) in.push_back(convert_element<T>(z));
  f(in, out, temperature);
  std::vector<double> result;
  for (const T s : out) result.push_back(convert_element<double>(s));
  return result;
}

template <class T>
std::vector<double> stable(const std::vector<double>& logits, double temperature = 1) {
  return apply<T>(softmax_row<T>, logits, temperature);
}
template <class T>
std::vector<double> naive(const std::vector<double>& logits, double temperature = 1) {
  return apply<T>(naive_softmax_row<T>, logits, temperature);
}
template <class T>
std::vector<double> logarithm(const std::vector<double>& logits, double temperature = 1) {
  return apply<T>(log_softmax_row<T>, logits, temperature);
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                 double relative) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i] == Approx(expected[i]).epsilon(relative).margin(0));
  }
}

bool all_nan(const std::vector<double>& values) {
  for (const double value : values) {
    if (!std::isnan(value)) return false;
  }
  return true;
}

std::vector<double> normal_row(std::size_t n, double deviation, std::uint64_t trial) {
  std::vector<float> normals(n);
  fill_normal(normals, 11, Stream::input_x, trial);
  std::vector<double> row;
  for (const float z : normals) row.push_back(deviation * static_cast<double>(z));
  return row;
}

// Two units in the last place: what two good exponentials may differ by.
constexpr double kFloat32 = 2.4e-7;
constexpr double kFloat64 = 4.5e-16;

// 30-digit values, rounded.
TEST_CASE("the softmax of [1,2,3], [10,20,30] and [100,200,300] has the known digits") {
  const std::vector<double> small = {0.09003057317038046, 0.24472847105479765, 0.66524095577482189};
  const std::vector<double> medium = {2.0610600462090623e-9, 4.5397868608866661e-5,
                                      0.99995460007033109};
  check_close(stable<double>({1, 2, 3}), small, kFloat64);
  check_close(stable<double>({10, 20, 30}), medium, kFloat64);
  check_close(stable<double>({100, 200, 300}), {1.3838965267367375e-87, 3.720075976020836e-44, 1},
              kFloat64);
  check_close(stable<double>({1000, 2000, 3000}), {0, 0, 1}, 0);
  check_close(stable<float>({1, 2, 3}), small, kFloat32);
  check_close(stable<float>({10, 20, 30}), medium, kFloat32);
  // The second is a subnormal of 27 units.
  CHECK(stable<float>({100, 200, 300}) == std::vector<double>{0, 27 * 0x1p-149, 1});
}

TEST_CASE("the naive softmax agrees until its exponential overflows, then is NaN") {
  check_close(naive<float>({1, 2, 3}), stable<double>({1, 2, 3}), kFloat32);
  check_close(naive<float>({10, 20, 30}), stable<double>({10, 20, 30}), kFloat32);
  CHECK(all_nan(naive<float>({100, 200, 300})));
  check_close(naive<double>({1, 2, 3}), stable<double>({1, 2, 3}), kFloat64);
  check_close(naive<double>({100, 200, 300}), stable<double>({100, 200, 300}), 1e-15);
  CHECK(all_nan(naive<double>({1000, 2000, 3000})));
  // One overflow makes its own weight NaN and the others 0.
  const auto one = naive<float>({0, 100});
  CHECK(one[0] == 0);
  CHECK(std::isnan(one[1]));
}

TEST_CASE("the naive softmax overflows where the exponential of its type does") {
  CHECK(naive<float>({88.72283172607422})[0] == 1);
  CHECK(all_nan(naive<float>({88.72283935546875})));
  CHECK(naive<double>({709.782712893384})[0] == 1);
  CHECK(all_nan(naive<double>({709.7827128933841})));
  // The neighbours of 11.08987 in float16 and of 88.71893 in bfloat16.
  CHECK(naive<Float16>({11.0859375})[0] == 1);
  CHECK(all_nan(naive<Float16>({11.09375})));
  CHECK(naive<BFloat16>({88.5})[0] == 1);
  CHECK(all_nan(naive<BFloat16>({89})));
}

TEST_CASE("the naive softmax rounds every operation to its type") {
  // 2048 ones: float16 counts to 2048 exactly, and 1 more is lost.
  const auto counted = naive<Float16>(std::vector<double>(2049, 0.0));
  CHECK(counted[0] == 1.0 / 2048);
  const auto right = stable<Float16>(std::vector<double>(2049, 0.0));
  CHECK(right[0] == static_cast<double>(static_cast<float>(Float16(1.0f / 2049))));
  // bfloat16 counts to 256.
  CHECK(naive<BFloat16>(std::vector<double>(300, 0.0))[0] == 1.0 / 256);
}

TEST_CASE("16-bit rows are computed in float32 and rounded once") {
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    std::vector<double> row = normal_row(9, 3, trial);
    for (double& z : row) z = convert_element<double>(convert_element<Float16>(z));
    const auto wide = stable<float>(row);
    const auto narrow = stable<Float16>(row);
    const auto wide_log = logarithm<float>(row);
    const auto narrow_log = logarithm<Float16>(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      CHECK(narrow[i] == convert_element<double>(convert_element<Float16>(wide[i])));
      CHECK(narrow_log[i] == convert_element<double>(convert_element<Float16>(wide_log[i])));
    }
  }
}

TEST_CASE("a row with one large logit is one-hot, equal logits share equally") {
  CHECK(stable<float>({-249.87, -424.13, -460.29, 378.10, -292.61}) ==
        std::vector<double>{0, 0, 0, 1, 0});
  const double third = static_cast<double>(1.0f / 3);
  CHECK(stable<float>({1000, 1000, 1000}) == std::vector<double>{third, third, third});
  const double largest = std::numeric_limits<double>::max();
  CHECK(stable<double>({largest, -largest, largest}) == std::vector<double>{0.5, 0, 0.5});
  CHECK(stable<double>({42}) == std::vector<double>{1});
  CHECK(stable<double>({}).empty());
}

TEST_CASE("a row without a finite logit is all zero, whatever its length") {
  for (const std::size_t n : {1u, 2u, 127u, 128u, 1000u}) {
    const std::vector<double> row(n, -kInfinity);
    CHECK(stable<float>(row) == std::vector<double>(n, 0));
    CHECK(stable<double>(row) == std::vector<double>(n, 0));
    CHECK(stable<Float16>(row) == std::vector<double>(n, 0));
    CHECK(logarithm<BFloat16>(row) == row);
    CHECK(logarithm<double>(row) == row);
  }
}

TEST_CASE("a masked entry of a row is exactly zero") {
  check_close(stable<double>({1, -kInfinity, 2}),
              {1 / (1 + std::exp(1.0)), 0, 1 / (1 + std::exp(-1.0))}, kFloat64);
  CHECK(logarithm<double>({1, -kInfinity, 2})[1] == -kInfinity);
}

TEST_CASE("NaN and infinity make a row NaN throughout") {
  for (const double bad : {kNotANumber, kInfinity}) {
    for (std::size_t place = 0; place < 3; ++place) {
      std::vector<double> row = {1, 2, -kInfinity};
      row[place] = bad;
      CHECK(all_nan(stable<float>(row)));
      CHECK(all_nan(stable<double>(row)));
      CHECK(all_nan(stable<BFloat16>(row)));
      CHECK(all_nan(logarithm<double>(row)));
    }
  }
  CHECK(all_nan(stable<double>({kNotANumber, -kInfinity})));
}

TEST_CASE("a temperature divides the differences and leaves no residual") {
  CHECK(stable<float>({1e10, 0}, 0.3) == std::vector<double>{1, 0});
  CHECK(stable<double>({1e10, 0}, 0.3) == std::vector<double>{1, 0});
  CHECK(stable<float>({1e10, 1e10}, 0.3) == std::vector<double>{0.5, 0.5});
  check_close(stable<double>({1, 2, 3}, 0.1), stable<double>({10, 20, 30}), 1e-15);
  check_close(stable<double>({1, 2, 3}, 2), stable<double>({0.5, 1, 1.5}), kFloat64);
  check_close(logarithm<double>({1, 2, 3}, 2), logarithm<double>({0.5, 1, 1.5}), kFloat64);
  check_close(naive<double>({1, 2, 3}, 2), naive<double>({0.5, 1, 1.5}), kFloat64);
  check_close(naive<float>({1, 2, 3}, 0.5), naive<float>({2, 4, 6}), kFloat32);
}

TEST_CASE("no temperature overflows, however small or large") {
  CHECK(stable<float>({1, 2, 2}, 1e-300) == std::vector<double>{0, 0.5, 0.5});
  CHECK(stable<double>({1, 2, 2}, 5e-324) == std::vector<double>{0, 0.5, 0.5});
  CHECK(stable<double>({1, 2}, 1e308) == std::vector<double>{0.5, 0.5});
  CHECK(stable<float>({1, 2}, 1e308) == std::vector<double>{0.5, 0.5});
  // The difference is -2e308, beyond float64; over the temperature it is -2.
  check_close(stable<double>({1e308, -1e308}, 1e308),
              {1 / (1 + std::exp(-2.0)), 1 / (1 + std::exp(2.0))}, kFloat64);
}

TEST_CASE("the logarithm of a saturated weight keeps its distance from 0") {
  const auto row = logarithm<double>({100, 200, 300});
  CHECK(row[0] == -200);
  CHECK(row[1] == -100);
  CHECK(row[2] == Approx(-3.720075976020836e-44).epsilon(kFloat64).margin(0));
  const auto single = logarithm<float>({10, 20, 30});
  CHECK(single[2] == Approx(-4.540096037048921e-5).epsilon(kFloat32).margin(0));
  check_close(logarithm<double>({1, 2, 3}),
              {-2.4076059644443803, -1.4076059644443803, -0.4076059644443803}, kFloat64);
}

// The definition, in long double.
TEST_CASE("random rows agree with the plain formula in a wider type") {
  for (const std::size_t n : {1u, 2u, 3u, 7u, 64u, 257u}) {
    for (const double deviation : {0.1, 1.0, 8.0}) {
      const std::vector<double> row = normal_row(n, deviation, n);
      long double sum = 0;
      for (const double z : row) sum += std::exp(static_cast<long double>(z));
      const auto weights = stable<double>(row);
      const auto logs = logarithm<double>(row);
      double total = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const long double s = std::exp(static_cast<long double>(row[i])) / sum;
        CHECK(weights[i] == Approx(static_cast<double>(s)).epsilon(1e-14).margin(0));
        CHECK(logs[i] == Approx(static_cast<double>(std::log(s))).epsilon(1e-14).margin(1e-15));
        total += weights[i];
      }
      CHECK(total == Approx(1).epsilon(1e-14));
    }
  }
}

TEST_CASE("adding the same number to every logit changes no weight") {
  // Multiples of 1/64 stay exact when shifted.
  std::vector<double> row = normal_row(33, 4, 1), shifted;
  for (double& z : row) z = std::round(z * 64) / 64;
  for (const double z : row) shifted.push_back(z - 1000);
  CHECK(stable<double>(row) == stable<double>(shifted));
  CHECK(stable<float>(row) == stable<float>(shifted));
  CHECK(logarithm<double>(row) == logarithm<double>(shifted));
}

TEST_CASE("a row may be overwritten by its softmax") {
  std::vector<double> row = {1, 2, 3}, logs = row, plain = row;
  const std::vector<double> input = row;
  softmax_row<double>(row, row);
  log_softmax_row<double>(logs, logs);
  naive_softmax_row<double>(plain, plain);
  CHECK(row == stable<double>(input));
  CHECK(logs == logarithm<double>(input));
  CHECK(plain == naive<double>(input));
}

}  // namespace
}  // namespace attnlab
