#include "attnlab/stats/softmax_theory.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "attnlab/core/error.h"
#include "attnlab/core/random.h"
#include "attnlab/stats/moments.h"
#include "catch.h"
#include "theory_table.h"

namespace attnlab {
namespace {

bool near(double value, double expected, double tolerance) {
  return std::isnan(expected) || std::fabs(value - expected) <= tolerance * std::fabs(expected);
}

TEST_CASE("the quadrature meets every table of softmax expectations to 1e-9") {
  for (const auto& row : test::theory_table("softmax_iid.txt")) {
    const auto n = static_cast<std::uint64_t>(row.number(0));
    const double v = row.number(1);
    INFO("n " << n << ", v " << v);
    const SoftmaxTheory theory = softmax_theory(n, v);
    if (!std::isnan(row.number(2))) CHECK(near(expected_max_p(n, v), row.number(2), 1e-10));
    CHECK(near(theory.sum_p2, row.number(3), 1e-11));
    CHECK(near(theory.sum_p3, row.number(4), 1e-10));
    CHECK(near(theory.entropy, row.number(5), 1e-10));
    CHECK(near(theory.jacobian_f2, row.number(6), 1e-11));
    CHECK(near(theory.trace, row.number(7), 1e-11));
    CHECK(near(theory.log_sum_exp, row.number(8), 1e-11));
    CHECK(near(theory.spread, row.number(9), 1e-10));
  }
}

// Each side is an integral of its own.
TEST_CASE("trace, entropy and log sum agree with the identities that tie them, for all n and v") {
  for (const std::uint64_t n : {2u, 3u, 8u, 512u, 65536u}) {
    for (const double v : {1e-12, 1e-5, 0.01, 0.5, 3.0, 40.0, 255.0, 257.0, 4096.0, 1e7, 1e14}) {
      INFO("n " << n << ", v " << v);
      const SoftmaxTheory theory = softmax_theory(n, v);
      CHECK(theory.sum_p2 + theory.trace == Approx(1).epsilon(1e-12));
      // Stein: E sum p z = v (1 - E sum p^2).
      CHECK(theory.entropy + v * theory.trace == Approx(theory.log_sum_exp).epsilon(1e-11));
      // Cauchy-Schwarz and the largest eigenvalue 1/2.
      CHECK(theory.jacobian_f2 <= theory.trace / 2);
      CHECK(theory.jacobian_f2 >= theory.trace * theory.trace / static_cast<double>(n) * 0.999999);
      CHECK(theory.entropy > 0);
    }
  }
}

TEST_CASE("the derivative of E ln Z by v is half the trace") {
  for (const std::uint64_t n : {2u, 64u, 4096u}) {
    for (const double v : {0.25, 4.0, 300.0}) {
      const double h = 1e-3 * v;
      const double slope =
          (softmax_theory(n, v + h).log_sum_exp - softmax_theory(n, v - h).log_sum_exp) / (2 * h);
      CHECK(slope == Approx(softmax_theory(n, v).trace / 2).epsilon(1e-5));
    }
  }
}

// p = 1/(1 + e^-x) with x ~ N(0, 2v): the half line in fine trapezoids, whose error is h^2/12 times
// the slope at 0, which is 0 for the even integrands and subtracted for 1 - max p.
TEST_CASE("two keys are the logistic of one normal") {
  for (const double v : {0.01, 0.25, 1.0, 16.0, 1024.0}) {
    const double s = std::sqrt(2 * v), h = std::min(s, 1.0) / 500;
    double loser = 0, trace = 0, frobenius = 0, spread = 0;
    for (double x = -12 * s; x <= 12 * s; x += h) {
      const double density = h * std::exp(-x * x / (4 * v)) / std::sqrt(4 * std::numbers::pi * v);
      const double q = 1 / (1 + std::exp(std::fabs(x))), pq = q * (1 - q);
      loser += density * q;
      trace += 2 * density * pq;
      frobenius += 4 * density * pq * pq;
      spread += 2 * density * pq * pq * x * x;
    }
    INFO("v " << v);
    const SoftmaxTheory theory = softmax_theory(2, v);
    CHECK(theory.trace == Approx(trace).epsilon(1e-9));
    CHECK(theory.jacobian_f2 == Approx(frobenius).epsilon(1e-9));
    CHECK(theory.spread == Approx(spread).epsilon(1e-9));
    CHECK(expected_max_p(2, v) == Approx(1 - loser).epsilon(1e-6));
  }
}

// Five standard errors: one seed in 400000 for each of the figures.
TEST_CASE("simulated softmax rows have the expected means") {
  constexpr std::size_t kKeys = 16;
  for (const double v : {1.0, 25.0}) {
    Moments max_p, entropy, frobenius, spread, cubes;
    for (std::uint64_t row = 0; row < 20000; ++row) {
      std::vector<float> z(kKeys);
      fill_normal(z, 17, Stream::input_q, row);
      double total = 0, mean = 0, log_mean = 0, p2 = 0, p3 = 0, largest = 0, far = 0;
      for (const float x : z) total += std::exp(std::sqrt(v) * x);
      for (const float x : z) mean += std::sqrt(v) * x * std::exp(std::sqrt(v) * x) / total;
      for (const float x : z) {
        const double logit = std::sqrt(v) * x, p = std::exp(logit) / total;
        largest = std::max(largest, p);
        log_mean -= p * (logit - std::log(total));
        p2 += p * p;
        p3 += p * p * p;
        far += p * p * (logit - mean) * (logit - mean);
      }
      max_p.add(largest);
      entropy.add(log_mean);
      cubes.add(p3);
      frobenius.add(p2 - 2 * p3 + p2 * p2);
      spread.add(far);
    }
    const SoftmaxTheory theory = softmax_theory(kKeys, v);
    const auto agrees = [](const Moments& sample, double expected) {
      return std::fabs(sample.mean - expected) < 5 * *sample.mean_std_error();
    };
    CHECK(agrees(max_p, expected_max_p(kKeys, v)));
    CHECK(agrees(entropy, theory.entropy));
    CHECK(agrees(cubes, theory.sum_p3));
    CHECK(agrees(frobenius, theory.jacobian_f2));
    CHECK(agrees(spread, theory.spread));
  }
}

TEST_CASE("equal logits share the weight and one key takes it all") {
  const SoftmaxTheory uniform = softmax_theory(8, 0);
  CHECK(uniform.sum_p2 == 0.125);
  CHECK(uniform.sum_p3 == 1.0 / 64);
  CHECK(uniform.trace == 0.875);
  CHECK(uniform.jacobian_f2 == 7.0 / 64);
  CHECK(uniform.entropy == Approx(std::log(8)).epsilon(1e-15));
  CHECK(uniform.log_sum_exp == uniform.entropy);
  CHECK(uniform.spread == 0);
  // Of equal weights T is the sum of (z - mean)^2 over n^2.
  CHECK(softmax_theory(8, 1e-40).spread == Approx(1e-40 * 7 / 64).epsilon(1e-14));
  CHECK(softmax_theory(8, 1e-20).spread == Approx(1e-20 * 7 / 64).epsilon(1e-9));
  CHECK(expected_max_p(8, 0) == 0.125);
  for (const double v : {0.0, 1.0, 1e20}) {
    const SoftmaxTheory one = softmax_theory(1, v);
    CHECK(one.sum_p2 == 1);
    CHECK(one.trace == 0);
    CHECK(one.jacobian_f2 == 0);
    CHECK(one.entropy == 0);
    CHECK(one.log_sum_exp == 0);
    CHECK(one.spread == 0);
    CHECK(expected_max_p(1, v) == 1);
  }
}

TEST_CASE("no seam shows where the computation changes its form") {
  const auto smooth = [](double v, double order) {
    const auto value = [](double x) {
      const SoftmaxTheory theory = softmax_theory(64, x);
      return std::log(theory.jacobian_f2) + std::log(theory.trace) +
             std::log(expected_max_p(64, x)) + std::log(theory.entropy) + std::log(theory.spread);
    };
    const double r = 1e-4;
    const double curvature = value(v * (1 + r)) - 2 * value(v) + value(v / (1 + r));
    return std::fabs(curvature) < order * r * r;
  };
  CHECK(smooth(256, 3));    // the wide normal
  CHECK(smooth(0.09, 3));   // the fine grid
  CHECK(smooth(1e12, 30));  // the frozen law
  // 1 - sum p^3 falls like the trace there.
  const SoftmaxTheory frozen = softmax_theory(64, 4e12);
  CHECK(1 - frozen.sum_p3 == Approx((1 - softmax_theory(64, 1e12).sum_p3) / 2).epsilon(1e-9));
  CHECK(1 - frozen.sum_p3 == Approx(1.5 * frozen.trace).epsilon(1e-5));
  CHECK(std::fabs(softmax_theory(64, 1.1e-30).sum_p2 * 64 - 1) < 1e-13);
}

TEST_CASE("the expected maximum of n normals is right to thirteen digits") {
  for (const auto& row : test::theory_table("normal_maximum.txt")) {
    const auto n = static_cast<std::uint64_t>(row.number(0));
    INFO("n " << n);
    CHECK(near(expected_normal_maximum(n), row.number(1), 1e-11));
  }
  CHECK(expected_normal_maximum(1) == 0);
  CHECK(expected_normal_maximum(2) == Approx(1 / std::sqrt(std::numbers::pi)).epsilon(1e-14));
  CHECK(expected_normal_maximum(3) == Approx(1.5 / std::sqrt(std::numbers::pi)).epsilon(1e-14));
}

TEST_CASE("no keys, and variances that are none, are refused") {
  CHECK_THROWS_AS(softmax_theory(0, 1), InputError);
  CHECK_THROWS_AS(expected_max_p(0, 1), InputError);
  CHECK_THROWS_AS(expected_normal_maximum(0), InputError);
  for (const double v : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(softmax_theory(4, v), InputError);
    CHECK_THROWS_AS(expected_max_p(4, v), InputError);
  }
}

}  // namespace
}  // namespace attnlab
