#include "attnlab/stats/covariance.h"

#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr Index kD = 5;
constexpr std::size_t kSize = 5;

// Rows of correlated entries far from zero.
std::vector<std::vector<double>> rows(std::size_t count) {
  std::vector<std::vector<double>> all;
  for (std::size_t trial = 0; trial < count; ++trial) {
    std::vector<float> z(kSize + 1);
    fill_normal(z, 3, Stream::input_k, trial);
    std::vector<double> row(kSize);
    for (std::size_t i = 0; i < kSize; ++i) {
      row[i] = 1000 + z[i] + static_cast<double>(i) * z[kSize];
    }
    all.push_back(row);
  }
  return all;
}

double plain_covariance(const std::vector<std::vector<double>>& all, std::size_t i, std::size_t j) {
  long double mean_i = 0, mean_j = 0, sum = 0;
  const auto n = static_cast<long double>(all.size());
  for (const auto& row : all) {
    mean_i += row[i] / n;
    mean_j += row[j] / n;
  }
  for (const auto& row : all) sum += (row[i] - mean_i) * (row[j] - mean_j);
  return static_cast<double>(sum / (n - 1));
}

template <class State>
State collect(const std::vector<std::vector<double>>& all, std::size_t first, std::size_t last) {
  State state(kD);
  for (std::size_t i = first; i < last; ++i) state.add(all[i]);
  return state;
}

TEST_CASE("the covariance of vectors is that of a plain loop, merged anywhere") {
  const auto all = rows(80);
  for (const std::size_t split : {0u, 1u, 33u, 80u}) {
    Covariance state = collect<Covariance>(all, 0, split);
    state.merge(collect<Covariance>(all, split, 80));
    CHECK(state.count() == 80);
    const Matrix<double> matrix = *state.matrix();
    for (Index i = 0; i < kD; ++i) {
      for (Index j = 0; j < kD; ++j) {
        const double plain =
            plain_covariance(all, static_cast<std::size_t>(i), static_cast<std::size_t>(j));
        CHECK(matrix(i, j) == Approx(plain).epsilon(1e-11));
        CHECK(matrix(i, j) == matrix(j, i));
      }
    }
  }
}

TEST_CASE("variances and covariance term of the components add up to the variance of the sum") {
  const auto all = rows(200);
  const Covariance full = collect<Covariance>(all, 0, 200);
  ComponentMoments state = collect<ComponentMoments>(all, 0, 71);
  state.merge(collect<ComponentMoments>(all, 71, 200));
  const Matrix<double> matrix = *full.matrix();
  CHECK(*state.variance_sum() == Approx(matrix.trace()).epsilon(1e-12));
  CHECK(*state.total().variance() == Approx(matrix.sum()).epsilon(1e-12));
  CHECK(*state.covariance_term() == Approx(matrix.sum() - matrix.trace()).epsilon(1e-11));
  CHECK(*state.covariance_term() > 50);  // the rows are correlated
}

TEST_CASE("fewer than two vectors have no covariance") {
  const auto all = rows(1);
  CHECK(!Covariance(kD).matrix());
  CHECK(!collect<Covariance>(all, 0, 1).matrix());
  CHECK(!collect<ComponentMoments>(all, 0, 1).variance_sum());
  CHECK(!ComponentMoments(kD).covariance_term());
}

TEST_CASE("the state of covariances and components survives as numbers") {
  const auto all = rows(9);
  const auto covariance = collect<Covariance>(all, 0, 9);
  CHECK(Covariance::from_values(covariance.values()).values() == covariance.values());
  CHECK(*Covariance::from_values(covariance.values()).matrix() == *covariance.matrix());
  const auto components = collect<ComponentMoments>(all, 0, 9);
  CHECK(ComponentMoments::from_values(components.values()).values() == components.values());
  CHECK(ComponentMoments::from_values(components.values()).covariance_term() ==
        components.covariance_term());
}

TEST_CASE("merging covariances with empty ones changes no bit") {
  const auto all = rows(9);
  const auto covariance = collect<Covariance>(all, 0, 9);
  Covariance left = covariance, right(kD);
  left.merge(Covariance(kD));
  right.merge(covariance);
  CHECK(left.values() == covariance.values());
  CHECK(right.values() == covariance.values());
  const auto components = collect<ComponentMoments>(all, 0, 9);
  ComponentMoments same = components, taken(kD);
  same.merge(ComponentMoments(kD));
  taken.merge(components);
  CHECK(same.values() == components.values());
  CHECK(taken.values() == components.values());
}

TEST_CASE("sizes and states that cannot be are refused") {
  CHECK_THROWS_AS(Covariance(0), InputError);
  CHECK_THROWS_AS(Covariance(4097), InputError);
  CHECK_THROWS_AS(ComponentMoments(0), InputError);
  for (const std::vector<double>& values :
       {std::vector<double>{}, {1}, {1, 2, 3}, {1.5, 1, 0, 0}, {1, 0}, {1, 1e9}, {-1, 1, 0, 0}}) {
    CHECK_THROWS_AS(Covariance::from_values(values), InputError);
    CHECK_THROWS_AS(ComponentMoments::from_values(values), InputError);
  }
  auto values = collect<ComponentMoments>(rows(3), 0, 3).values();
  values.back() = -1;
  CHECK_THROWS_AS(ComponentMoments::from_values(values), InputError);
}

}  // namespace
}  // namespace attnlab
