#include "attnlab/stats/gradient_theory.h"

#include <cmath>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/random.h"
#include "attnlab/stats/moments.h"
#include "catch.h"
#include "theory_table.h"

namespace attnlab {
namespace {

// The table's mixture has 32 Gauss-Laguerre nodes, which are off by up to 1e-4 at d = 4.
TEST_CASE("the gradients at initialisation follow their table") {
  for (const auto& row : test::theory_table("gradients.txt")) {
    GradientLaw law;
    law.d_k = law.d_v = row.number(0);
    law.keys = static_cast<std::uint64_t>(row.number(1));
    law.scale = std::sqrt(row.number(2) / law.d_k);
    const double queries = row.number(3);
    INFO("d " << law.d_k << ", n " << law.keys << ", v " << row.number(2));
    const GradientTheory theory = gradient_theory(law);
    const double tolerance = law.d_k > 4 ? 1e-8 : 1e-4;
    CHECK(theory.logit_variance == Approx(row.number(2)));
    CHECK(theory.scores == Approx(row.number(4)).epsilon(tolerance));
    CHECK(theory.v * queries == Approx(row.number(5)).epsilon(tolerance));
    CHECK(theory.k * queries == Approx(row.number(6)).epsilon(tolerance));
    CHECK(theory.q == Approx(row.number(7)).epsilon(tolerance));
  }
}

TEST_CASE("the root mean square of an element is that of the norm over their number") {
  GradientLaw law;
  law.keys = 64;
  law.d_k = law.d_v = 64;
  law.scale = 0.125;
  const GradientTheory scaled = gradient_theory(law);
  CHECK(scaled.rms_q == Approx(0.185).margin(5e-4));
  CHECK(scaled.rms_k == Approx(std::sqrt(scaled.k / (64 * 64))).epsilon(1e-15));
  CHECK(scaled.rms_v == Approx(std::sqrt(scaled.v / (64 * 64))).epsilon(1e-15));
  CHECK(scaled.rms_scores == Approx(std::sqrt(scaled.scores / 64)).epsilon(1e-15));
  law.scale = 1;
  CHECK(gradient_theory(law).rms_q == Approx(2.15).margin(5e-3));
}

// The backward pass by plain loops. Five standard errors: one seed in 400000 for each.
TEST_CASE("measured gradients have the expected norms for any size and deviation") {
  constexpr std::size_t kN = 5, kDk = 3, kDv = 2;
  GradientLaw law;
  law.keys = kN;
  law.d_k = kDk;
  law.d_v = kDv;
  law.scale = 0.9;
  law.sigma_q = 1.2;
  law.sigma_k = 0.7;
  law.sigma_v = 1.6;
  Moments grad_scores, grad_q, grad_k, grad_v;
  for (std::uint64_t trial = 0; trial < 20000; ++trial) {
    std::vector<float> q(kDk), k(kN * kDk), v(kN * kDv), out(kDv);
    fill_normal(q, 5, Stream::sample_q, trial);
    fill_normal(k, 5, Stream::sample_k, trial);
    fill_normal(v, 5, Stream::sample_v, trial);
    fill_normal(out, 5, Stream::sample_grad_output, trial);
    double p[kN], dp[kN] = {}, total = 0, mean = 0;
    for (std::size_t j = 0; j < kN; ++j) {
      double s = 0;
      for (std::size_t i = 0; i < kDk; ++i) {
        s += law.scale * law.sigma_q * q[i] * law.sigma_k * k[j * kDk + i];
      }
      for (std::size_t i = 0; i < kDv; ++i) dp[j] += law.sigma_v * v[j * kDv + i] * out[i];
      p[j] = std::exp(s);
      total += p[j];
    }
    double cotangent = 0, norms[4] = {}, dq[kDk] = {};
    for (std::size_t i = 0; i < kDv; ++i) cotangent += static_cast<double>(out[i]) * out[i];
    for (double& x : p) x /= total;
    for (std::size_t j = 0; j < kN; ++j) mean += p[j] * dp[j];
    double query = 0;
    for (const float x : q) query += law.sigma_q * law.sigma_q * x * x;
    for (std::size_t j = 0; j < kN; ++j) {
      const double ds = p[j] * (dp[j] - mean);
      norms[0] += ds * ds;
      norms[2] += law.scale * law.scale * ds * ds * query;
      norms[3] += p[j] * p[j] * cotangent;
      for (std::size_t i = 0; i < kDk; ++i) dq[i] += law.scale * ds * law.sigma_k * k[j * kDk + i];
    }
    for (const double x : dq) norms[1] += x * x;
    grad_scores.add(norms[0]);
    grad_q.add(norms[1]);
    grad_k.add(norms[2]);
    grad_v.add(norms[3]);
  }
  const GradientTheory theory = gradient_theory(law);
  const auto agrees = [](const Moments& sample, double expected) {
    return std::fabs(sample.mean - expected) < 5 * *sample.mean_std_error();
  };
  CHECK(agrees(grad_scores, theory.scores));
  CHECK(agrees(grad_q, theory.q));
  CHECK(agrees(grad_k, theory.k));
  CHECK(agrees(grad_v, theory.v));
}

TEST_CASE("one key has a gradient to its value only") {
  const GradientTheory theory = gradient_theory(GradientLaw{});
  CHECK(theory.scores == 0);
  CHECK(theory.q == 0);
  CHECK(theory.k == 0);
  CHECK(theory.v == Approx(1).epsilon(1e-12));
}

TEST_CASE("gradient laws that cannot be are refused") {
  const auto with = [](auto change) {
    GradientLaw law;
    change(law);
    return gradient_theory(law);
  };
  CHECK_THROWS_AS(with([](GradientLaw& law) { law.keys = 0; }), InputError);
  CHECK_THROWS_AS(with([](GradientLaw& law) { law.d_k = 0; }), InputError);
  CHECK_THROWS_AS(with([](GradientLaw& law) { law.d_v = 0; }), InputError);
  CHECK_THROWS_AS(with([](GradientLaw& law) { law.scale = NAN; }), InputError);
  CHECK_THROWS_AS(with([](GradientLaw& law) { law.sigma_q = 0; }), InputError);
  CHECK_THROWS_AS(with([](GradientLaw& law) { law.sigma_k = -1; }), InputError);
  CHECK_THROWS_AS(with([](GradientLaw& law) { law.sigma_v = INFINITY; }), InputError);
}

}  // namespace
}  // namespace attnlab
