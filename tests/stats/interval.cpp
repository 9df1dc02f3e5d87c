#include "attnlab/stats/interval.h"

#include <array>
#include <cmath>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/random.h"
#include "attnlab/stats/student_t.h"
#include "catch.h"

namespace attnlab {
namespace {

// Products of two standard normals, and their sums.
std::vector<double> scores(std::size_t count, std::size_t d, std::uint64_t seed) {
  std::vector<double> values(count);
  std::vector<float> q(count * d), k(count * d);
  fill_normal(q, seed, Stream::input_q);
  fill_normal(k, seed, Stream::input_k);
  for (std::size_t i = 0; i < count * d; ++i) {
    values[i / d] += static_cast<double>(q[i]) * k[i];
  }
  return values;
}

TEST_CASE("the interval of the mean of 1 to 5 is Student's") {
  const Estimate mean = mean_estimate(moments_of(std::array{1.0, 2.0, 3.0, 4.0, 5.0}), 0.95);
  CHECK(*mean.value == 3);
  CHECK(*mean.std_error == Approx(std::sqrt(0.5)).epsilon(1e-15));
  CHECK(*mean.low == Approx(1.0368).margin(5e-5));
  CHECK(*mean.high == Approx(4.9632).margin(5e-5));
  CHECK(mean.reason.empty());
}

TEST_CASE("two values give an interval of 12.7 standard errors and one gives none") {
  const Estimate two = mean_estimate(moments_of(std::array{0.0, 2.0}), 0.95);
  CHECK(*two.high == Approx(1 + 12.706204736174705).epsilon(1e-12));
  const Estimate one = mean_estimate(moments_of(std::array{4.0}), 0.95);
  CHECK(*one.value == 4);
  CHECK(!one.has_interval());
  CHECK(!one.std_error);
  CHECK(!one.reason.empty());
  CHECK(!mean_estimate(Moments{}, 0.95).value);
}

// The leave-one-out variances, plainly.
double jackknife_log_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  std::vector<double> logs;
  for (std::size_t out = 0; out < values.size(); ++out) {
    Moments rest;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i != out) rest.add(values[i]);
    }
    logs.push_back(std::log(*rest.variance()));
  }
  const Moments spread = moments_of(logs);
  return std::sqrt((n - 1) / n * spread.m2);
}

TEST_CASE("the interval of a variance is the delta form of the jackknife on its logarithm") {
  const std::vector<double> values = scores(400, 1, 5);
  const Moments sample = moments_of(values);
  const Estimate variance = variance_estimate(sample, 0.95);
  CHECK(*variance.value == *sample.variance());
  // The formula, term by term.
  const double n = 400, s2 = *sample.variance();
  double spread = 0;
  for (const double x : values) {
    spread += std::pow((x - sample.mean) * (x - sample.mean) - sample.m2 / n, 2);
  }
  const double se = n / ((n - 1) * (n - 2)) * std::sqrt((n - 1) / n * spread) / s2;
  CHECK(*variance.std_error == Approx(se * s2).epsilon(1e-12));
  const double t = student_t_quantile(0.975, 399);
  CHECK(*variance.low == Approx(s2 * std::exp(-t * se)).epsilon(1e-12));
  CHECK(*variance.high == Approx(s2 * std::exp(t * se)).epsilon(1e-12));
  // And the jackknife proper agrees to the order of 1/N.
  CHECK(se == Approx(jackknife_log_error(values)).epsilon(0.02));
}

TEST_CASE("the interval of a variance scales with the values and widens with the confidence") {
  const std::vector<double> values = scores(100, 4, 6);
  std::vector<double> scaled;
  for (const double x : values) scaled.push_back(8 * x + 3);
  const Estimate plain = variance_estimate(moments_of(values), 0.9);
  const Estimate larger = variance_estimate(moments_of(scaled), 0.9);
  CHECK(*larger.low == Approx(64 * *plain.low).epsilon(1e-12));
  CHECK(*larger.high == Approx(64 * *plain.high).epsilon(1e-12));
  const Estimate surer = variance_estimate(moments_of(values), 0.99);
  CHECK(*surer.low < *plain.low);
  CHECK(*surer.high > *plain.high);
}

TEST_CASE("an infinite fourth moment leaves a variance without an interval, and says so") {
  const Estimate refused = variance_estimate(moments_of(scores(50, 1, 7)), 0.95, false);
  CHECK(refused.value);
  CHECK(!refused.has_interval());
  CHECK(!refused.std_error);
  CHECK(refused.reason == "interval not valid: the fourth moment is infinite");
  const Estimate mean = mean_estimate(moments_of(scores(50, 1, 7)), 0.95, false);
  CHECK(!mean.has_interval());
  CHECK(mean.reason == "interval not valid: the variance is infinite");
}

TEST_CASE("too few or equal values have a reason instead of an interval") {
  CHECK(!variance_estimate(Moments{}, 0.95).value);
  CHECK(!variance_estimate(moments_of(std::array{1.0}), 0.95).value);
  const Estimate two = variance_estimate(moments_of(std::array{1.0, 2.0}), 0.95);
  CHECK(*two.value == 0.5);
  CHECK(!two.has_interval());
  CHECK(!two.reason.empty());
  const Estimate equal = variance_estimate(moments_of(std::array{1.0, 1.0, 1.0}), 0.95);
  CHECK(*equal.value == 0);
  CHECK(!equal.has_interval());
  CHECK(!equal.reason.empty());
}

TEST_CASE("a confidence outside 0 to 1 is refused") {
  const Moments sample = moments_of(std::array{1.0, 2.0, 3.0});
  for (const double confidence : {0.0, 1.0, -0.5, 95.0, std::nan("")}) {
    CHECK_THROWS_AS(mean_estimate(sample, confidence), InputError);
    CHECK_THROWS_AS(variance_estimate(sample, confidence), InputError);
  }
}

// Of 1000 right intervals 950 hold the truth; 25 away is 3.6 standard errors, met by one seed in
// 3000. At d = 1 the coverage is .93 for this few values, which moves the lower bound.
TEST_CASE("intervals of the variance hold the truth as often as they say") {
  for (const std::size_t d : {1u, 16u}) {
    int held = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      const Estimate variance = variance_estimate(moments_of(scores(500, d, 900 + seed)), 0.95);
      const auto truth = static_cast<double>(d);
      if (*variance.low <= truth && truth <= *variance.high) ++held;
    }
    INFO("d " << d << ": " << held);
    CHECK(held > (d == 1 ? 905 : 925));
    CHECK(held < 975);
  }
}

TEST_CASE("over blocks the variance is the mean of the blocks' mean squares") {
  const Estimate variance = variance_over_blocks(std::array{1.0, 2.0, 3.0, 4.0, 5.0}, 0.95);
  CHECK(*variance.value == 3);
  CHECK(*variance.low == Approx(1.0368).margin(5e-5));
}

TEST_CASE("the standard error of the covariance term is sigma^4 sqrt(2 d (d-1) / (N-1))") {
  CHECK(covariance_term_std_error(4, 1, 1000) == Approx(std::sqrt(24.0 / 999)).epsilon(1e-15));
  CHECK(covariance_term_std_error(4, 2, 1000) == Approx(16 * std::sqrt(24.0 / 999)).epsilon(1e-15));
  CHECK(covariance_term_std_error(1, 2, 1000) == 0);
}

TEST_CASE("a weighted line fit finds the line, its errors and how well it fits") {
  const std::array<double, 3> x{0, 1, 3}, error{0.1, 0.2, 0.1};
  const std::array<double, 3> exact{1, 3, 7};
  const LineFit line = weighted_line_fit(x, exact, error, 0.95);
  CHECK(*line.slope.value == Approx(2).epsilon(1e-14));
  CHECK(*line.intercept == Approx(1).epsilon(1e-13));
  CHECK(*line.chi2 == Approx(0).margin(1e-20));
  // Normal equations by hand: weights 100, 25, 100; sums w 225, wx 325, wxx 925, wy 825+d.
  const std::array<double, 3> off{1, 3.4, 7};
  const LineFit fit = weighted_line_fit(x, off, error, 0.95);
  const double w = 225, wx = 325, wxx = 925, wy = 100 + 85 + 700, wxy = 85 + 2100;
  const double slope = (w * wxy - wx * wy) / (w * wxx - wx * wx);
  CHECK(*fit.slope.value == Approx(slope).epsilon(1e-13));
  CHECK(*fit.intercept == Approx((wy - slope * wx) / w).epsilon(1e-13));
  const double se = std::sqrt(w / (w * wxx - wx * wx));
  CHECK(*fit.slope.std_error == Approx(se).epsilon(1e-13));
  CHECK(*fit.slope.high == Approx(slope + 1.959963984540054 * se).epsilon(1e-12));
  CHECK(*fit.chi2 > 1);
}

TEST_CASE("a line through one abscissa has no slope") {
  const std::array<double, 2> same{2, 2}, y{1, 3}, error{1, 1}, none{1, 0};
  CHECK(!weighted_line_fit(same, y, error, 0.95).slope.value);
  CHECK(!weighted_line_fit(y, y, none, 0.95).slope.value);
  CHECK(!weighted_line_fit({}, {}, {}, 0.95).slope.value);
}

// Signs have kurtosis 1: the linear term of the interval vanishes, and alone it would hold the
// truth 8 times in 10. 1000 runs that hold it with probability .95 or more do so less than 920
// times with probability 2e-5.
TEST_CASE("the interval of the variance of signs holds the truth") {
  int held = 0;
  std::vector<double> uniforms(200);
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    fill_uniform(uniforms, seed, Stream::input_q);
    Moments signs;
    for (const double u : uniforms) signs.add(u < 0.5 ? -1 : 1);
    const Estimate variance = variance_estimate(signs, 0.95);
    held += *variance.low <= 1 && 1 <= *variance.high ? 1 : 0;
  }
  CHECK(held >= 920);
}

}  // namespace
}  // namespace attnlab
