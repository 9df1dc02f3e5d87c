// Vectors so long that those of one row or block are drawn in several pieces.

#include <algorithm>
#include <cmath>
#include <vector>

#include "attnlab/experiments/gradients.h"
#include "attnlab/experiments/saturation.h"
#include "attnlab/experiments/variance.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr std::size_t kLength = 900, kVectors = 17;
constexpr Index kRows = 130;

std::vector<float> drawn(Stream role, std::uint64_t number) {
  std::vector<float> values(kLength);
  fill_entries(values, {}, 0, stream_at(role, 0), number);
  return values;
}

double plain_dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kLength; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// The dot products of the vector with each of the set of that role.
std::vector<double> with_each(const std::vector<float>& a, Stream role, std::uint64_t set) {
  std::vector<double> products;
  for (std::uint64_t j = 0; j < kVectors; ++j) {
    products.push_back(plain_dot(a, drawn(role, set * kVectors + j)));
  }
  return products;
}

// The softmax of scores / sqrt(d).
std::vector<double> softmax_of(std::vector<double> scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) {
    score = std::exp((score - largest) / std::sqrt(static_cast<double>(kLength)));
    total += score;
  }
  for (double& score : scores) score /= total;
  return scores;
}

TEST_CASE("scores of long queries and keys are those of each pair") {
  VarianceOptions options;
  options.d_k = {kLength};
  options.scaling = {"none"};
  options.sweep.samples = kRows;
  double sum = 0, squares = 0;
  for (std::uint64_t trial = 0; trial < kRows; ++trial) {
    const double score = plain_dot(drawn(Stream::sample_q, trial), drawn(Stream::sample_k, trial));
    sum += score;
    squares += score * score;
  }
  const double expected = (squares - sum * sum / kRows) / (kRows - 1);
  CHECK(variance(options, {}).rows[0].variance == Approx(expected).epsilon(1e-10));
}

TEST_CASE("rows over long keys are those of each key, fresh or reused") {
  for (const KeyDraw draw : {KeyDraw::fresh, KeyDraw::reuse}) {
    SaturationOptions options;
    options.d_k = {kLength};
    options.keys = {kVectors};
    options.scaling = {"inv_sqrt_d"};
    options.key_draw = draw;
    options.sweep.samples = kRows;
    double expected = 0;
    for (std::uint64_t row = 0; row < kRows; ++row) {
      const std::uint64_t set = draw == KeyDraw::fresh ? row : row / 64;
      for (const double p :
           softmax_of(with_each(drawn(Stream::sample_q, row), Stream::sample_k, set))) {
        expected += p * p / kRows;
      }
    }
    CHECK(saturation(options, {}).rows[0].sum_p2.mean == Approx(expected).epsilon(1e-10));
  }
}

TEST_CASE("gradients of long keys and values are those of each") {
  GradientsOptions options;
  options.d_k = {kLength};
  options.keys = {kVectors};
  options.scaling = {"inv_sqrt_d"};
  options.sweep.samples = kRows;
  double expected = 0;
  for (std::uint64_t row = 0; row < kRows; ++row) {
    const auto q = drawn(Stream::sample_q, row);
    const auto p = softmax_of(with_each(q, Stream::sample_k, row));
    const auto grad_weights =
        with_each(drawn(Stream::sample_grad_output, row), Stream::sample_v, row);
    double mean = 0;
    for (std::size_t j = 0; j < kVectors; ++j) mean += p[j] * grad_weights[j];
    for (std::size_t j = 0; j < kVectors; ++j) {
      // An element of the gradient to key j is this times one of q / sqrt(d).
      const double grad_score = p[j] * (grad_weights[j] - mean);
      expected += grad_score * grad_score * plain_dot(q, q) / kLength;
    }
  }
  expected = std::sqrt(expected / (kRows * kVectors * kLength));
  CHECK(gradients(options, {}).rows[0].k.rms == Approx(expected).epsilon(1e-9));
}

}  // namespace
}  // namespace attnlab
