#include "attnlab/experiments/product_count.h"

#include <cmath>
#include <limits>
#include <vector>

#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

double plain_count(const std::vector<double>& numbers, double bound) {
  double count = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (std::size_t j = 0; j < numbers.size(); ++j) {
      count += i != j && numbers[i] * numbers[j] < bound ? 1 : 0;
    }
  }
  return count;
}

// e^(spread z) of uniform z from -1 to 0.
std::vector<double> powers(std::size_t count, double spread, std::uint64_t trial) {
  std::vector<double> numbers(count);
  fill_uniform(numbers, 6, Stream::input_x, trial);
  for (double& number : numbers) number = std::exp(-spread * number);
  return numbers;
}

TEST_CASE("products below a bound are counted as a loop over all pairs does") {
  ProductCount products;
  std::uint64_t trial = 0;
  for (const std::size_t count : {0u, 1u, 2u, 16u, 17u, 40u, 200u}) {
    for (const double spread : {1e-12, 0.1, 3.0, 50.0, 700.0, 745.0}) {
      const std::vector<double> numbers = powers(count, spread, ++trial);
      for (const double part : {-0.1, 0.0, 0.3, 1.0, 1.5, 2.0, 2.2}) {
        const double bound = std::exp(-spread * part);
        INFO(count << " numbers down to e^-" << spread << ", bound " << bound);
        CHECK(products.below(numbers, bound) == plain_count(numbers, bound));
      }
    }
  }
}

TEST_CASE("products next to the bound and equal to it are told apart by their rounding") {
  ProductCount products;
  std::vector<double> numbers = powers(30, 2, 100);
  const std::vector<double> others = numbers;
  for (const double number : others) numbers.push_back(0.25 / number);
  for (const double bound : {std::nextafter(0.25, 0), 0.25, std::nextafter(0.25, 1)}) {
    CHECK(products.below(numbers, bound) == plain_count(numbers, bound));
  }
  const std::vector<double> equal(50, 0.5);
  CHECK(products.below(equal, 0.25) == 0);
  CHECK(products.below(equal, std::nextafter(0.25, 1)) == 50 * 49);
}

TEST_CASE("zeros and the smallest numbers have products below any bound that is not 0") {
  ProductCount products;
  std::vector<double> numbers = powers(20, 3, 101);
  for (int i = 0; i < 5; ++i) numbers.push_back(0);
  for (int i = 1; i < 5; ++i) numbers.push_back(i * std::numeric_limits<double>::denorm_min());
  for (const double bound : {0.0, 5e-324, 1e-310, 0.1, 2.0, std::nan("")}) {
    CHECK(products.below(numbers, bound) == plain_count(numbers, bound));
  }
}

}  // namespace
}  // namespace attnlab
