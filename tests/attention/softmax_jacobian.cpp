#include "attnlab/attention/softmax_jacobian.h"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <limits>
#include <vector>

#include "attnlab/core/random.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

template <class T>
SoftmaxRow<T> row_of(const std::vector<T>& logits, double temperature = 1) {
  SoftmaxRow<T> row;
  row.set_logits(logits, temperature);
  return row;
}

template <class T>
std::vector<T> jacobian_of(const SoftmaxRow<T>& row) {
  std::vector<T> jacobian(static_cast<std::size_t>(row.size() * row.size()));
  softmax_jacobian<T>(row, jacobian);
  return jacobian;
}

std::vector<double> normals(std::size_t n, double deviation, std::uint64_t trial) {
  std::vector<float> values(n);
  fill_normal(values, 17, Stream::input_x, trial);
  std::vector<double> row;
  for (const float z : values) row.push_back(deviation * static_cast<double>(z));
  return row;
}

auto close_to(double value, double relative = 1e-14) {
  return Approx(value).epsilon(relative).margin(0);
}

struct Known {
  std::vector<double> logits;
  double entropy, trace, frobenius, eigenvalue, sum_squares;
};

// From the definitions in 60 digits and more (the eigenvalue by a dense symmetric solver).
const std::vector<Known>& known_rows() {
  static const std::vector<Known> rows = {
      {{1, 2, 3},
       0.8323955818399389,
       0.4894569421095953,
       0.3893897746575994,
       0.3709036419844583,
       0.5105430578904047},
      {{10, 20, 30},
       0.0004994208675665038,
       9.079573721773333e-05,
       9.079264571539072e-05,
       9.07926456627559e-05,
       0.9999092042627823},
      {{20, 40, 60},
       4.328422615830097e-08,
       4.1223072363804075e-09,
       4.122307230007876e-09,
       4.122307230007876e-09,
       0.9999999958776927},
      {{100, 200, 300},
       3.757276735781044e-42,
       7.440151952041672e-44,
       7.440151952041672e-44,
       7.440151952041672e-44,
       1.0},
      {{400, 800, 1200},
       7.679830082823163e-172,
       3.8303391934280114e-174,
       3.8303391934280114e-174,
       3.8303391934280114e-174,
       1.0},
      {{0, 0}, 0.6931471805599453, 0.5, 0.5, 0.5, 0.5},
      {{3, 1},
       0.3653338550872076,
       0.20998717080701304,
       0.20998717080701304,
       0.20998717080701304,
       0.790012829192987},
      {{0, 0, 0, -1},
       1.3235150729357963,
       0.7235790748627607,
       0.43949634167970103,
       0.2969227424756547,
       0.2764209251372393},
      {{2, 2, -50}, 0.6931471805599453, 0.5, 0.5, 0.5, 0.5},
      {{0, -0.0009765625, -3},
       0.7906372074075412,
       0.5234145865948879,
       0.4891443014189475,
       0.48784965208995484,
       0.476585413405112},
      {{0.5, -1.25, 3, 2.75, -7},
       0.8745484199587955,
       0.5411524800368679,
       0.4718396517554527,
       0.46739684544973314,
       0.4588475199631321},
      {{0, -40, -40, -40.125, -90},
       5.025492321942858e-16,
       2.449173596392018e-17,
       1.7332655772493892e-17,
       1.6345644210047787e-17,
       1.0},
      {{0, 0, 0, 0, 0, 0, 0},
       1.9459101490553132,
       0.8571428571428571,
       0.3499271061118826,
       0.14285714285714285,
       0.14285714285714285},
      {{-600, 0, -601},
       2.1798542228423604e-258,
       7.250845911612508e-261,
       6.088474910147946e-261,
       5.947291116848901e-261,
       1.0},
  };
  return rows;
}

TEST_CASE("the metrics of a row have the known digits, saturated or not") {
  for (const Known& known : known_rows()) {
    const auto row = row_of(known.logits);
    const SoftmaxMetrics metrics = softmax_metrics(row);
    CHECK(metrics.entropy == close_to(known.entropy));
    CHECK(metrics.trace == close_to(known.trace));
    CHECK(metrics.frobenius == close_to(known.frobenius));
    CHECK(metrics.sum_squares == close_to(known.sum_squares));
    CHECK(softmax_largest_eigenvalue(row) == close_to(known.eigenvalue));
  }
}

TEST_CASE("the norm squared is the square of the norm where float64 holds it") {
  const SoftmaxMetrics metrics = softmax_metrics(row_of<double>({20, 40, 60}));
  CHECK(metrics.frobenius_squared == close_to(4.1223072300078757e-9 * 4.1223072300078757e-9));
  CHECK(softmax_metrics(row_of<double>({400, 800, 1200})).frobenius_squared == 0);
}

TEST_CASE("a float32 row saturates as far as its weights reach") {
  const auto row = row_of<float>({100, 200, 300});
  const double weight = 27 * 0x1p-149;  // 3.72e-44 as a subnormal float32
  CHECK(softmax_metrics(row).trace == close_to(2 * weight));
  CHECK(softmax_metrics(row).frobenius == close_to(2 * weight));
  CHECK(softmax_largest_eigenvalue(row) == close_to(2 * weight));
  const auto medium = row_of<float>({20, 40, 60});
  CHECK(softmax_metrics(medium).frobenius == close_to(4.1223072300078757e-9, 3e-7));
  CHECK(softmax_metrics(medium).entropy == close_to(4.3284226158300976e-8, 3e-7));
}

TEST_CASE("the Jacobian of [1,2,3] has the known entries") {
  const std::vector<double> expected = {0.08192506906,  -0.02203304452, -0.05989202454,
                                        -0.02203304452, 0.1848364465,   -0.162803402,
                                        -0.05989202454, -0.162803402,   0.2226954265};
  const auto jacobian = jacobian_of(row_of<double>({1, 2, 3}));
  for (std::size_t i = 0; i < 9; ++i) CHECK(jacobian[i] == close_to(expected[i], 1e-9));
}

TEST_CASE("the Jacobian of a saturated row does not vanish") {
  const auto jacobian = jacobian_of(row_of<double>({100, 200, 300}));
  CHECK(jacobian[8] == close_to(3.720075976020836e-44));
  CHECK(jacobian[5] == close_to(-3.720075976020836e-44));
  CHECK(jacobian[4] == close_to(3.720075976020836e-44));
  CHECK(jacobian[1] == close_to(-5.148200222e-131, 1e-9));
  CHECK(jacobian[0] == close_to(1.3838965267367375e-87));
  // The largest weight first: its place must not matter.
  CHECK(jacobian_of(row_of<double>({300, 200, 100}))[0] == close_to(3.720075976020836e-44));
  CHECK(jacobian_of(row_of<float>({100, 200, 300}))[8] == 27 * 0x1p-149f);
}

TEST_CASE("no entry of a Jacobian is minus zero") {
  for (const double entry : jacobian_of(row_of<double>({0, 5000, -kInfinity}))) {
    CHECK_FALSE(std::signbit(entry));
  }
}

// s_i (delta_ij - s_j) from the definition; rows of a Jacobian sum to 0, for softmax sums to 1.
TEST_CASE("the Jacobian is the definition's, symmetric, and its rows sum to 0") {
  for (const std::size_t n : {1u, 2u, 5u, 33u}) {
    const auto row = row_of(normals(n, 1.5, n));
    const auto jacobian = jacobian_of(row);
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const double s_i = row.weights()[i], s_j = row.weights()[j];
        CHECK(jacobian[i * n + j] ==
              Approx(s_i * ((i == j ? 1.0 : 0.0) - s_j)).epsilon(1e-14).margin(1e-16));
        CHECK(jacobian[i * n + j] == jacobian[j * n + i]);
        sum += jacobian[i * n + j];
      }
      CHECK(sum == Approx(0).margin(1e-15));
    }
  }
}

TEST_CASE("the metrics are those of the Jacobian written out") {
  for (const std::size_t n : {1u, 2u, 3u, 8u, 64u}) {
    for (const double deviation : {0.0, 0.3, 1.0, 4.0}) {
      const auto row = row_of(normals(n, deviation, n));
      const auto jacobian = jacobian_of(row);
      double trace = 0, squares = 0, entropy = 0;
      for (std::size_t i = 0; i < n; ++i) {
        trace += jacobian[i * n + i];
        for (std::size_t j = 0; j < n; ++j) squares += jacobian[i * n + j] * jacobian[i * n + j];
        entropy -= row.weights()[i] * std::log(row.weights()[i]);
      }
      const SoftmaxMetrics metrics = softmax_metrics(row);
      CHECK(metrics.trace == close_to(trace, 1e-13));
      CHECK(metrics.frobenius == close_to(std::sqrt(squares), 1e-13));
      CHECK(metrics.frobenius_squared == close_to(squares, 1e-13));
      CHECK(metrics.entropy == Approx(entropy).epsilon(1e-13).margin(1e-15));
      CHECK(metrics.max_weight == row.weights()[static_cast<std::size_t>(row.argmax())]);
    }
  }
}

TEST_CASE("the largest eigenvalue is that of a dense symmetric solver") {
  for (const Index n : {2, 3, 8, 64, 100}) {
    for (const double deviation : {1e-8, 0.1, 1.0, 3.0}) {
      const auto row = row_of(normals(static_cast<std::size_t>(n), deviation, 5));
      auto jacobian = jacobian_of(row);
      const MatrixMap<double> matrix(jacobian.data(), n, n);
      const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix, Eigen::EigenvaluesOnly);
      CHECK(softmax_largest_eigenvalue(row) == close_to(solver.eigenvalues().maxCoeff(), 1e-13));
    }
  }
}

TEST_CASE("two equal largest weights are the eigenvalue themselves") {
  CHECK(softmax_largest_eigenvalue(row_of<double>({0, 0})) == 0.5);
  const auto row = row_of<double>({3, 1, 3, 0});
  CHECK(softmax_largest_eigenvalue(row) == row.weights()[0]);
  CHECK(softmax_largest_eigenvalue(row_of<double>({0, 0, 0, 0})) == 0.25);
}

TEST_CASE("a row of one weight has no derivative") {
  const auto row = row_of<double>({7});
  CHECK(softmax_metrics(row).trace == 0);
  CHECK(softmax_metrics(row).frobenius == 0);
  CHECK(softmax_metrics(row).entropy == 0);
  CHECK(softmax_metrics(row).sum_squares == 1);
  CHECK(softmax_largest_eigenvalue(row) == 0);
  CHECK(jacobian_of(row)[0] == 0);
  CHECK(softmax_metrics(row_of<double>({})).trace == 0);
}

TEST_CASE("a row of zeros has metrics 0, a row of NaN metrics NaN") {
  const auto empty = row_of<double>({-kInfinity, -kInfinity});
  CHECK(softmax_metrics(empty).entropy == 0);
  CHECK(softmax_metrics(empty).trace == 0);
  CHECK(softmax_metrics(empty).frobenius == 0);
  CHECK(softmax_largest_eigenvalue(empty) == 0);
  CHECK(jacobian_of(empty)[0] == 0);
  SoftmaxRow<double> given;
  given.set_weights(std::vector<double>{0.5, kNotANumber, 0.25});
  for (const auto& row :
       {row_of<double>({1, kNotANumber}), row_of<double>({1, kInfinity}), given}) {
    const SoftmaxMetrics metrics = softmax_metrics(row);
    CHECK(std::isnan(metrics.entropy));
    CHECK(std::isnan(metrics.trace));
    CHECK(std::isnan(metrics.frobenius));
    CHECK(std::isnan(metrics.sum_squares));
    CHECK(std::isnan(metrics.max_weight));
    CHECK(std::isnan(softmax_largest_eigenvalue(row)));
    CHECK(std::isnan(jacobian_of(row)[0]));
  }
}

TEST_CASE("a masked entry takes no part in the metrics") {
  const auto with = row_of<double>({1, -kInfinity, 2});
  const auto without = row_of<double>({1, 2});
  CHECK(softmax_metrics(with).entropy == softmax_metrics(without).entropy);
  CHECK(softmax_metrics(with).frobenius == softmax_metrics(without).frobenius);
  CHECK(softmax_largest_eigenvalue(with) == softmax_largest_eigenvalue(without));
}

TEST_CASE("weights as given have the metrics of the logits they came from") {
  for (const Known& known : known_rows()) {
    const auto from_logits = row_of(known.logits);
    SoftmaxRow<double> row;
    row.set_weights(from_logits.weights());
    CHECK(row.argmax() == from_logits.argmax());
    CHECK(softmax_metrics(row).entropy == close_to(known.entropy, 1e-13));
    CHECK(softmax_metrics(row).trace == close_to(known.trace));
    CHECK(softmax_metrics(row).frobenius == close_to(known.frobenius));
    CHECK(softmax_largest_eigenvalue(row) == close_to(known.eigenvalue));
  }
  SoftmaxRow<double> zeros;
  zeros.set_weights(std::vector<double>{0, 1, 0});
  CHECK(softmax_metrics(zeros).entropy == 0);
  CHECK(softmax_metrics(zeros).frobenius == 0);
  zeros.set_weights(std::vector<double>{0, 0, 0});
  CHECK(softmax_metrics(zeros).entropy == 0);
}

TEST_CASE("a product with the Jacobian is that of the matrix written out") {
  for (const std::size_t n : {1u, 2u, 9u, 40u}) {
    const auto row = row_of(normals(n, 2, n));
    const auto jacobian = jacobian_of(row);
    const auto v = normals(n, 1, n + 1000);
    std::vector<double> product(n);
    softmax_jacobian_product<double>(row, v, product);
    for (std::size_t i = 0; i < n; ++i) {
      double expected = 0;
      for (std::size_t j = 0; j < n; ++j) expected += jacobian[i * n + j] * v[j];
      CHECK(product[i] == Approx(expected).epsilon(1e-13).margin(1e-15));
    }
  }
}

TEST_CASE("a product with a saturated Jacobian does not vanish") {
  std::vector<double> product(3);
  softmax_jacobian_product<double>(row_of<double>({100, 200, 300}), std::vector<double>{1, 2, 5},
                                   product);
  const double s = 3.720075976020836e-44;
  CHECK(product[0] == close_to(-4 * 1.3838965267367375e-87));
  CHECK(product[1] == close_to(-3 * s));
  CHECK(product[2] == close_to(3 * s));
  std::vector<float> single(3);
  softmax_jacobian_product<float>(row_of<float>({20, 40, 60}), std::vector<float>{1, 2, 5}, single);
  CHECK(static_cast<double>(single[2]) == close_to(3 * 2.061153618190204e-9, 1e-6));
}

TEST_CASE("central differences agree with the Jacobian") {
  for (const double temperature : {1.0, 0.5}) {
    const auto row = row_of(normals(12, 2, 3), temperature);
    const auto jacobian = jacobian_of(row);
    std::vector<double> column(12);
    for (Index j = 0; j < 12; ++j) {
      softmax_central_differences(row, j, column);
      for (std::size_t i = 0; i < 12; ++i) {
        CHECK(std::fabs(column[i] - jacobian[i * 12 + static_cast<std::size_t>(j)]) < 5e-11);
      }
    }
  }
}

TEST_CASE("the temperature acts before everything else") {
  const auto cold = row_of<double>({1, 2, 3}, 0.1);
  const auto warm = row_of<double>({10, 20, 30});
  CHECK(softmax_metrics(cold).entropy == close_to(softmax_metrics(warm).entropy));
  CHECK(softmax_metrics(cold).frobenius == close_to(softmax_metrics(warm).frobenius));
  CHECK(cold.log_ratios()[0] == close_to(-20));
  CHECK(cold.rest() == close_to(4.5399929668912870e-05));
}

TEST_CASE("a row set again forgets the row before") {
  SoftmaxRow<double> row;
  row.set_logits(std::vector<double>{kNotANumber, 1, 2, 3});
  row.set_logits(std::vector<double>{1, 2});
  CHECK(row.size() == 2);
  CHECK(softmax_metrics(row).frobenius == softmax_metrics(row_of<double>({1, 2})).frobenius);
}

}  // namespace
}  // namespace attnlab
