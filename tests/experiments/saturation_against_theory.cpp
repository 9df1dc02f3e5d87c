#include <cmath>

#include "attnlab/experiments/saturation.h"
#include "catch.h"
#include "experiments/identity.h"
#include "experiments/inputs.h"
#include "stats/theory_table.h"

namespace attnlab {
namespace {

// How often an interval may miss: a false alarm in 100000 comparisons.
constexpr double kSure = 0.99999;

SaturationOptions iid(std::vector<double> variances, std::vector<Index> keys, Index samples) {
  SaturationOptions options;
  options.logits = Logits::iid;
  options.logit_variance = std::move(variances);
  options.keys = std::move(keys);
  options.sweep.samples = samples;
  options.sweep.confidence = kSure;
  return options;
}

SaturationOptions dots(std::vector<Index> d_k, std::vector<Index> keys, Index samples) {
  SaturationOptions options;
  options.d_k = std::move(d_k);
  options.keys = std::move(keys);
  options.sweep.samples = samples;
  options.sweep.confidence = kSure;
  return options;
}

template <class Columns>
void check_held(const Columns& columns, const char* name) {
  INFO(name << ": " << columns.ci_low.value() << " to " << columns.ci_high.value() << ", theory "
            << columns.theory.value());
  CHECK(*columns.ci_low <= *columns.theory);
  CHECK(*columns.theory <= *columns.ci_high);
  CHECK(*columns.ci_low < columns.mean);
  CHECK(columns.mean < *columns.ci_high);
}

void check_all_held(const SaturationResult& result) {
  REQUIRE_FALSE(result.rows.empty());
  for (const SaturationRow& row : result.rows) {
    INFO("d_k " << row.d_k.value_or(0) << ", keys " << row.keys << ", v "
                << row.logit_variance.value());
    check_held(row.max_p, "max_p");
    check_held(row.sum_p2, "sum_p2");
    check_held(row.entropy, "entropy");
    check_held(row.jacobian_f2, "jacobian_f2");
    check_held(row.trace, "trace");
  }
}

TEST_CASE("independent logits meet the quadrature of theory D") {
  const SaturationResult result = saturation(iid({0.25, 1, 4, 64}, {2, 8, 64, 512}, 2000), {});
  check_all_held(result);
  std::size_t found = 0;
  for (const test::TheoryRow& known : test::theory_table("softmax_iid.txt")) {
    for (const SaturationRow& row : result.rows) {
      if (static_cast<double>(row.keys) != known.number(0)) continue;
      if (row.logit_variance != known.number(1)) continue;
      ++found;
      CHECK(row.max_p.theory.value() == Approx(known.number(2)).epsilon(1e-9));
      CHECK(row.sum_p2.theory.value() == Approx(known.number(3)).epsilon(1e-9));
      CHECK(row.entropy.theory.value() == Approx(known.number(5)).epsilon(1e-9));
      CHECK(row.jacobian_f2.theory.value() == Approx(known.number(6)).epsilon(1e-9));
      CHECK(row.trace.theory.value() == Approx(known.number(7)).epsilon(1e-9));
    }
  }
  CHECK(found == 16);
}

TEST_CASE("dot products meet the mixture over the length of their query") {
  const SaturationResult result = saturation(dots({4, 16, 64}, {8, 64}, 1500), {});
  check_all_held(result);
  // tests/data/theory/softmax_shared_query.txt: d, n, v.
  std::size_t found = 0;
  for (const test::TheoryRow& known : test::theory_table("softmax_shared_query.txt")) {
    for (const SaturationRow& row : result.rows) {
      if (static_cast<double>(*row.d_k) != known.number(0)) continue;
      if (static_cast<double>(row.keys) != known.number(1)) continue;
      if (row.logit_variance != known.number(2)) continue;
      ++found;
      CHECK(row.sum_p2.theory.value() == Approx(known.number(3)).epsilon(1e-8));
      CHECK(row.entropy.theory.value() == Approx(known.number(4)).epsilon(1e-8));
      // The table's own quadrature is good to 1e-7 at d_k 4.
      CHECK(row.jacobian_f2.theory.value() == Approx(known.number(5)).epsilon(2e-7));
    }
  }
  CHECK(found == 12);
  CHECK(result.finding.find("At d_k 64 a softmax over 64 keys has ") == 0);
  CHECK(result.finding.find(" effective keys unscaled, ") != std::string::npos);
}

TEST_CASE("rows that share their keys meet the same theory") {
  SaturationOptions options = dots({16}, {8}, 64 * 60);
  options.key_draw = KeyDraw::reuse;
  check_all_held(saturation(options, {}));
}

TEST_CASE("every scaling has the logit variance of theory G") {
  SaturationOptions options = dots({64}, {512}, 70);
  options.scaling = {
      "none",     "inv_sqrt_d", "inv_d", "scalable_softmax:0.43", "log_n_over_sqrt_d",
      "critical", "cosine:10"};
  const SaturationResult result = saturation(options, {});
  const std::vector<double> v = {
      64, 1, 1.0 / 64, 7.195696744151511, 38.91669412737431, 12.476649250079015, 1.5625};
  REQUIRE(result.rows.size() == v.size());
  for (std::size_t i = 0; i < v.size(); ++i) {
    CHECK(result.rows[i].logit_variance == Approx(v[i]).epsilon(1e-12));
    // The logits of a cosine are not normal.
    CHECK(result.rows[i].sum_p2.theory.has_value() == (i < 6));
  }
}

// 1 - Phi(88.72.. / sqrt(d x))^n over x = X/d, X chi-square of d, by a plain sum: v = d.
double plain_shared_overflow(double n, double d) {
  constexpr double kStep = 1e-5;
  double sum = 0;
  for (double x = 0.5; x < 2; x += kStep) {
    const double log_density = (d / 2 - 1) * std::log(d * x) - d * x / 2 - d / 2 * std::log(2.0) -
                               std::lgamma(d / 2) + std::log(d);
    const double below = 1 - std::erfc(88.72283172607422 / std::sqrt(2 * d * x)) / 2;
    sum += std::exp(log_density) * (1 - std::pow(below, n)) * kStep;
  }
  return sum;
}

TEST_CASE("naive float32 rows fail as often as their closed form says") {
  const SaturationResult independent = saturation(iid({512, 1024}, {64, 512}, 2000), {});
  std::size_t found = 0;
  for (const test::TheoryRow& known : test::theory_table("naive_overflow.txt")) {
    for (const SaturationRow& row : independent.rows) {
      // v = d of unscaled scores.
      if (known.word(0) != "float32" || row.logit_variance != known.number(1)) continue;
      if (static_cast<double>(row.keys) != known.number(2)) continue;
      ++found;
      const double p = known.number(3);
      // The table rounds the last finite argument of exp to 88.72284.
      CHECK(row.naive_nan_share_theory.value() == Approx(p).epsilon(1e-5));
      // 4.5 standard errors and one row for the discreteness: one false alarm in 150000.
      CHECK(std::abs(row.naive_nan_share.value() - p) <=
            4.5 * std::sqrt(p * (1 - p) / 2000) + 0.0005);
    }
  }
  CHECK(found == 4);
  // Of dot products the rows share the length of their query.
  const SaturationRow shared = saturation(dots({1024}, {64}, 300), {}).rows.at(0);
  const double p = shared.naive_nan_share_theory.value();
  CHECK(p == Approx(plain_shared_overflow(64, 1024)).epsilon(1e-7));
  CHECK(std::abs(shared.naive_nan_share.value() - p) <= 4.5 * std::sqrt(p * (1 - p) / 300));
}

TEST_CASE("closed forms stand where they are meant to hold") {
  const SaturationResult result = saturation(iid({0, 0.5, 2, 64, 7}, {64}, 70), {});
  const double critical = 2 * std::log(64.0);
  for (const SaturationRow& row : result.rows) {
    INFO(row.logit_variance.value());
    CHECK(row.critical_variance.value() == Approx(critical));
    CHECK(row.saturation.has_value() == (row.logit_variance > 0));
    CHECK(row.frozen_sum_p2.has_value() == (row.logit_variance > critical));
    CHECK(row.frozen_above_9.has_value() == (row.logit_variance > critical));
    CHECK(row.small_v_sum_p2.has_value() == (row.logit_variance < 1));
  }
  const double m = 2.3437334650794406 / 8;  // E[M_64] / sqrt(64)
  const SaturationRow& frozen = result.rows[3];
  CHECK(frozen.saturation.value() == Approx(m).epsilon(1e-9));
  CHECK(frozen.frozen_sum_p2.value() == Approx(1 - m).epsilon(1e-9));
  CHECK(frozen.frozen_jacobian_f2.value() == Approx(m * (1 - m) / 3).epsilon(1e-9));
  const double pi = std::acos(-1.0);
  for (const auto& [share, x] :
       {std::pair(frozen.frozen_above_9, 0.9), std::pair(frozen.frozen_above_99, 0.99),
        std::pair(frozen.frozen_above_999, 0.999)}) {
    CHECK(share.value() ==
          Approx(std::sin(pi * m) / (pi * m) * std::pow((1 - x) / x, m)).epsilon(1e-9));
  }
  const double c = 63.0 / 64, v = 0.5;
  CHECK(result.rows[1].small_v_sum_p2.value() ==
        Approx((1 + v * c + v * v / 2 * c * (1 - 6.0 / 64)) / 64).epsilon(1e-12));
  CHECK(result.rows[1].small_v_entropy.value() ==
        Approx(std::log(64.0) - v * c / 2 + 3 * v * v / 256 * c).epsilon(1e-12));
}

TEST_CASE("saturation has the same bits on any number of threads and shards") {
  SaturationOptions options = dots({1, 9}, {3, 20}, 450);
  // Without theory, which costs more than the rows do.
  options.entries.distribution = Distribution::uniform;
  options.scaling = {"none", "inv_sqrt_d", "cosine:3"};
  SECTION("fresh keys") { check_identity(saturation, options); }
  SECTION("reused keys") {
    options.key_draw = KeyDraw::reuse;
    check_identity(saturation, options);
  }
  SECTION("quantiles") {
    options.quantiles = {0.1, 0.5, 0.9};
    check_identity(saturation, options);
  }
  SECTION("independent logits") {
    options.logits = Logits::iid;
    options.quantiles = {0.5};
    check_identity(saturation, options);
  }
}

template <class Change>
std::string refused_with(const Change& change) {
  SaturationOptions options = dots({4}, {4}, 100);
  change(options);
  return refusal([&] { saturation(options, {}); });
}

TEST_CASE("what saturation cannot measure is refused by name") {
  using O = SaturationOptions;
  CHECK(refused_with([](O&) {}) == "");
  CHECK(refused_with([](O& o) { o.d_k = {}; }) == "d_k: need at least one");
  CHECK(refused_with([](O& o) { o.keys = {}; }) == "keys: need at least one");
  CHECK(refused_with([](O& o) { o.scaling = {}; }) == "scaling: need at least one");
  CHECK(refused_with([](O& o) {
          o.scaling = {"0.5", "none", "0.50"};
        }) == "scaling: got 0.50, is there twice");
  CHECK(refused_with([](O& o) { o.logit_variance = {2}; }).find("logit_variance: got 2") == 0);
  CHECK(
      refused_with([](O& o) {
        o.key_draw = KeyDraw::reuse;
        o.sweep.samples = 64;
      }) ==
      "samples: got 64, need more than one block of 64 rows where the rows of a block share keys");
  CHECK(refused_with([](O& o) {
          o.key_draw = KeyDraw::reuse;
          o.sweep.samples = 65;
        }) == "");
  CHECK(refused_with([](O& o) { o.entries.nu = 3; }).find("nu: got 3") == 0);
  CHECK(refused_with([](O& o) { o.sweep.samples = Index{1} << 50; }).find("the rows of a point") !=
        std::string::npos);
}

}  // namespace
}  // namespace attnlab
