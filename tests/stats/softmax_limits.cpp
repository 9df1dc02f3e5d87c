#include "attnlab/stats/softmax_limits.h"

#include <cmath>
#include <numbers>

#include "attnlab/stats/softmax_theory.h"
#include "catch.h"
#include "theory_table.h"

namespace attnlab {
namespace {

TEST_CASE("the frozen phase has the moments of the Poisson-Dirichlet process") {
  const FrozenSoftmax half = *frozen_softmax(0.5);
  CHECK(half.sum_p2 == 0.5);
  CHECK(half.sum_p3 == 0.375);
  CHECK(half.trace == 0.5);
  CHECK(half.jacobian_f2 == Approx(1.0 / 12).epsilon(1e-15));
  // psi(1) - psi(1/2) = 2 ln 2.
  CHECK(half.entropy == Approx(2 * std::numbers::ln2).epsilon(1e-14));
  // n = 64, v = 1024 in the limit.
  const FrozenSoftmax table = *frozen_softmax(std::sqrt(critical_variance(64) / 1024));
  CHECK(table.entropy == Approx(0.15888394720253596).epsilon(1e-12));
  CHECK(table.sum_p3 == Approx(0.8688713886422607).epsilon(1e-12));
  CHECK(!frozen_softmax(1));
  CHECK(!frozen_softmax(0));
  CHECK(!frozen_softmax(64, 1));  // not frozen
  CHECK(!frozen_softmax(64, 0));
}

TEST_CASE("deep in the frozen phase the closed form at finite n is the quadrature") {
  for (const std::uint64_t n : {8u, 512u}) {
    const double v = 1e6;
    const FrozenSoftmax frozen = *frozen_softmax(n, v);
    const SoftmaxTheory theory = softmax_theory(n, v);
    CHECK(frozen.trace == Approx(theory.trace).epsilon(3e-3));
    CHECK(frozen.entropy == Approx(theory.entropy).epsilon(1e-2));
    CHECK(frozen.jacobian_f2 == Approx(theory.jacobian_f2).epsilon(1e-2));
    // The next term of the trace, - pi^2 / (12 v), is smaller than what is seen here.
    CHECK(theory.trace ==
          Approx(frozen.m * (1 - std::numbers::pi * std::numbers::pi / (12 * v))).epsilon(1e-8));
  }
}

TEST_CASE("the share of one-hot rows follows its table") {
  for (const auto& row : test::theory_table("frozen_share.txt")) {
    const double m = row.number(2);
    if (m >= 1) {
      CHECK(!frozen_share_above(m, 0.9));
      continue;
    }
    CHECK(*frozen_share_above(m, 0.9) == Approx(row.number(3)).epsilon(1e-10));
    CHECK(*frozen_share_above(m, 0.99) == Approx(row.number(4)).epsilon(1e-10));
    CHECK(*frozen_share_above(m, 0.999) == Approx(row.number(5)).epsilon(1e-10));
  }
  CHECK(!frozen_share_above(0.5, 0.4));
  CHECK(!frozen_share_above(0.5, 1));
}

TEST_CASE("the expansions for small v leave an error of the next order") {
  for (const std::uint64_t n : {2u, 3u, 8u, 512u}) {
    const auto keys = static_cast<double>(n);
    for (const double v : {0.01, 0.02}) {
      const SoftmaxTheory theory = softmax_theory(n, v);
      const SmallVarianceSoftmax small = small_variance_softmax(n, v);
      CHECK(std::fabs(theory.sum_p2 - small.sum_p2) * keys < 2 * v * v * v);
      CHECK(std::fabs(theory.entropy - small.entropy) < 2 * v * v * v);
      CHECK(std::fabs(theory.jacobian_f2 - small.jacobian_f2) * keys < 3 * v * v);
    }
  }
}

TEST_CASE("the share of naive softmax rows that overflow follows its table") {
  for (const auto& row : test::theory_table("naive_overflow.txt")) {
    // The table takes the logarithm of the largest number in a few digits, close to the argument.
    const bool single = row.word(0) == "float32";
    const double largest = single ? 88.72283905 : 11.08986;
    const auto n = static_cast<std::uint64_t>(row.number(2));
    INFO(row.word(0) << ", d " << row.number(1) << ", n " << n);
    CHECK(naive_overflow_share(n, row.number(1), largest) == Approx(row.number(3)).epsilon(1e-9));
    if (single) {
      CHECK(naive_overflow_share(n, row.number(1)) == Approx(row.number(3)).epsilon(1e-4));
    }
  }
  CHECK(naive_overflow_share(8, 0) == 0);
  // d = 1024, n = 512, unscaled.
  CHECK(naive_overflow_share(512, 1024) == Approx(0.76).margin(0.005));
}

TEST_CASE("a shared query makes the overflow of few dimensions more likely") {
  CHECK(shared_naive_overflow_share(64, 4, 100) > 100 * naive_overflow_share(64, 100));
  CHECK(shared_naive_overflow_share(512, 1e7, 1024) ==
        Approx(naive_overflow_share(512, 1024)).epsilon(1e-5));
}

}  // namespace
}  // namespace attnlab
