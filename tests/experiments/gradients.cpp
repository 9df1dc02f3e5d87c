#include "attnlab/experiments/gradients.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "attnlab/stats/distributions.h"
#include "catch.h"
#include "experiments/identity.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

GradientsOptions sized(std::vector<Index> d_k, std::vector<Index> keys, Index samples) {
  GradientsOptions options;
  options.d_k = std::move(d_k);
  options.keys = std::move(keys);
  options.sweep.samples = samples;
  return options;
}

using Vector = std::vector<long double>;

Vector drawn(std::size_t d, const EntryLaw& law, Stream role, std::uint64_t point,
             std::uint64_t number) {
  std::vector<float> values(d);
  fill_entries(values, law, 5, stream_at(role, point), number);
  return {values.begin(), values.end()};
}

long double plain_dot(const Vector& a, const Vector& b) {
  long double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The root mean square of an element of dq, dK and dV of one row, by the whole Jacobian.
std::array<double, 3> plain_gradients(long double scale, const Vector& q,
                                      const std::vector<Vector>& k, const std::vector<Vector>& v,
                                      const Vector& grad_output) {
  const std::size_t n = k.size(), d = q.size();
  Vector p(n), grad_weights(n);
  long double largest = -1e30L, total = 0;
  for (std::size_t j = 0; j < n; ++j) largest = std::max(largest, scale * plain_dot(q, k[j]));
  for (std::size_t j = 0; j < n; ++j) {
    p[j] = std::exp(scale * plain_dot(q, k[j]) - largest);
    total += p[j];
    grad_weights[j] = plain_dot(grad_output, v[j]);
  }
  for (long double& x : p) x /= total;
  Vector grad_scores(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      grad_scores[i] += (i == j ? p[i] * (1 - p[i]) : -p[i] * p[j]) * grad_weights[j];
    }
  }
  long double dq = 0, dk = 0, dv = 0;
  for (std::size_t c = 0; c < d; ++c) {
    long double element = 0;
    for (std::size_t j = 0; j < n; ++j) {
      element += scale * grad_scores[j] * k[j][c];
      dk += std::pow(scale * grad_scores[j] * q[c], 2);
      dv += std::pow(p[j] * grad_output[c], 2);
    }
    dq += element * element;
  }
  const auto root = [](long double sum, std::size_t elements) {
    return static_cast<double>(std::sqrt(sum / static_cast<long double>(elements)));
  };
  return {root(dq, d), root(dk, n * d), root(dv, n * d)};
}

struct PlainColumns {
  double rms = 0, median = 0, dead_share = 0, reach = 0;
};

PlainColumns plain_columns(std::vector<double> roots) {
  const auto rows = static_cast<double>(roots.size());
  PlainColumns columns;
  double mean = 0, around = 0;
  for (const double root : roots) mean += root * root / rows;
  for (const double root : roots) around += std::pow(root * root - mean, 2) / (rows - 1);
  columns.rms = std::sqrt(mean);
  columns.reach = std::sqrt(around / rows) / mean;  // of the logarithm of the mean square
  for (const double root : roots) columns.dead_share += root < 0.01 * columns.rms ? 1 / rows : 0;
  std::sort(roots.begin(), roots.end());
  const std::size_t half = roots.size() / 2;
  columns.median = roots.size() % 2 == 1 ? roots[half] : (roots[half - 1] + roots[half]) / 2;
  return columns;
}

template <class Columns>
void check_columns(const Columns& columns, const PlainColumns& plain) {
  CHECK(columns.rms == Approx(plain.rms).epsilon(1e-9));
  CHECK(columns.median.value() == Approx(plain.median).epsilon(1e-9));
  CHECK(columns.dead_share == Approx(plain.dead_share).margin(1e-12));
  // t of 120 degrees of freedom.
  const double reach = 1.9799304050824413 * plain.reach / 2;
  CHECK(columns.ci_low.value() == Approx(plain.rms * std::exp(-reach)).epsilon(1e-8));
  CHECK(columns.ci_high.value() == Approx(plain.rms * std::exp(reach)).epsilon(1e-8));
}

TEST_CASE("the gradients of a row are those of the whole Jacobian over the same draws") {
  for (const Distribution distribution : {Distribution::normal, Distribution::uniform}) {
    GradientsOptions options = sized({3, 20}, {2, 9}, 121);
    options.scaling = {"none", "inv_sqrt_d", "critical", "0.1"};
    options.entries = {distribution, std::nullopt, 1.5};
    options.sweep.run.seed = 5;
    const EntryLaw law = entry_law(options.entries);
    const GradientsResult result = gradients(options, {});
    REQUIRE(result.rows.size() == 16);
    for (std::uint64_t point = 0; point < 4; ++point) {
      const auto d = static_cast<std::size_t>(options.d_k[point / 2]);
      const auto n = static_cast<std::size_t>(options.keys[point % 2]);
      const double root = std::sqrt(static_cast<double>(d));
      const std::vector<double> scales = {
          1, 1 / root, std::sqrt(2 * std::log(static_cast<double>(n))) / root, 0.1};
      std::array<std::array<std::vector<double>, 3>, 4> roots;
      for (std::uint64_t row = 0; row < 121; ++row) {
        std::vector<Vector> k, v;
        for (std::uint64_t j = 0; j < n; ++j) {
          k.push_back(drawn(d, law, Stream::sample_k, point, row * n + j));
          v.push_back(drawn(d, law, Stream::sample_v, point, row * n + j));
        }
        const Vector q = drawn(d, law, Stream::sample_q, point, row);
        const Vector grad_output = drawn(d, {}, Stream::sample_grad_output, point, row);
        for (std::size_t s = 0; s < 4; ++s) {
          const auto of =
              plain_gradients(static_cast<long double>(scales[s]), q, k, v, grad_output);
          for (std::size_t i = 0; i < 3; ++i) roots[s][i].push_back(of[i]);
        }
      }
      for (std::size_t s = 0; s < 4; ++s) {
        const GradientsRow& row = result.rows[4 * point + s];
        INFO("d_k " << d << ", keys " << n << ", " << row.scaling);
        CHECK(row.d_k == static_cast<Index>(d));
        CHECK(row.keys == static_cast<Index>(n));
        CHECK(row.scaling == options.scaling[s]);
        CHECK(row.samples == 121);
        CHECK(row.logit_variance ==
              Approx(scales[s] * scales[s] * static_cast<double>(d) * std::pow(1.5, 4)));
        check_columns(row.q, plain_columns(roots[s][0]));
        check_columns(row.k, plain_columns(roots[s][1]));
        check_columns(row.v, plain_columns(roots[s][2]));
        CHECK(row.q.theory.has_value() == (distribution == Distribution::normal));
      }
    }
  }
}

template <class Columns>
void check_held(const Columns& columns) {
  INFO(columns.ci_low.value() << " to " << columns.ci_high.value() << ", theory "
                              << columns.theory.value());
  CHECK(*columns.ci_low <= *columns.theory);
  CHECK(*columns.theory <= *columns.ci_high);
}

TEST_CASE("root mean squares meet their theory") {
  GradientsOptions options = sized({4, 16}, {8, 64}, 2000);
  options.entries.sigma = 0.9;
  // One false alarm in 100000 comparisons.
  options.sweep.confidence = 0.99999;
  const GradientsResult result = gradients(options, {});
  REQUIRE(result.rows.size() == 8);
  for (const GradientsRow& row : result.rows) {
    INFO("d_k " << row.d_k << ", keys " << row.keys << ", " << row.scaling);
    check_held(row.q);
    check_held(row.k);
    check_held(row.v);
  }
  CHECK(result.finding.find("At d_k 16 and 64 keys the gradient of an element of q has unscaled "
                            "the root mean square") == 0);
}

TEST_CASE("unscaled gradients grow in the mean while most rows die, as theory H has it") {
  struct Case {
    Index d, n, rows;
    double scaled_rms, scaled_median, raw_rms, raw_median, dead;
  };
  for (const Case& c : {Case{64, 64, 1000, .185, .166, 2.15, .81, .130},
                        Case{256, 64, 500, .185, .168, 3.30, .21, .363},
                        Case{1024, 8, 1000, .367, .313, 3.84, 1.9e-5, .727},
                        Case{1024, 64, 200, .185, .170, 4.84, .0024, .617}}) {
    INFO("d_k " << c.d << ", keys " << c.n);
    const GradientsResult result = gradients(sized({c.d}, {c.n}, c.rows), {});
    const GradientsRow& raw = result.rows.at(0);
    const GradientsRow& scaled = result.rows.at(1);
    // The theory is exact, the table has three digits.
    CHECK(raw.q.theory.value() == Approx(c.raw_rms).epsilon(0.004));
    CHECK(scaled.q.theory.value() == Approx(c.scaled_rms).epsilon(0.004));
    // A median of rows is off by 1.25 sd/sqrt(rows), the scaled rows have an sd of about half the
    // median: 4.5 of those, one false alarm in 150000.
    const double rows = static_cast<double>(c.rows);
    CHECK(scaled.q.median.value() == Approx(c.scaled_median).epsilon(4.5 * 0.63 / std::sqrt(rows)));
    CHECK(scaled.q.dead_share == 0);
    // 4.5 standard errors, and as much again for the table's own rows.
    CHECK(std::abs(raw.q.dead_share - c.dead) < 6.4 * std::sqrt(c.dead * (1 - c.dead) / rows));
    // Unscaled rows spread over decades: only their size is told.
    CHECK(raw.q.median.value() > c.raw_median / 5);
    CHECK(raw.q.median.value() < c.raw_median * 5);
  }
}

TEST_CASE("gradients of one key are zero but to v") {
  const GradientsRow row = gradients(sized({4}, {1}, 70), {}).rows.at(0);
  CHECK(row.q.rms == 0);
  CHECK(row.k.rms == 0);
  CHECK(row.q.theory.value() == Approx(0).margin(1e-12));
  CHECK_FALSE(row.q.ci_low);
  CHECK(row.q.dead_share == 0);
  CHECK(row.v.rms > 0.5);
  CHECK(row.v.theory.value() == Approx(1));
}

TEST_CASE("gradients have the same bits on any number of threads and shards") {
  GradientsOptions options = sized({9, 16}, {3, 20}, 450);
  SECTION("normal entries") { check_identity(gradients, options); }
  SECTION("student_t entries") {
    options.entries = {Distribution::student_t, 3.0, 2};
    check_identity(gradients, options);
  }
}

template <class Change>
std::string refused_with(const Change& change) {
  GradientsOptions options = sized({4}, {4}, 100);
  change(options);
  return refusal([&] { gradients(options, {}); });
}

TEST_CASE("what gradients cannot measure is refused by name") {
  using O = GradientsOptions;
  CHECK(refused_with([](O&) {}) == "");
  CHECK(refused_with([](O& o) { o.d_k = {}; }) == "d_k: need at least one");
  CHECK(refused_with([](O& o) { o.keys = {}; }) == "keys: need at least one");
  CHECK(refused_with([](O& o) { o.scaling = {}; }) == "scaling: need at least one");
  CHECK(refused_with([](O& o) {
          o.scaling = {"none", "none"};
        }) == "scaling: got none, is there twice");
  for (const char* name : {"qk_norm:2", "cosine:10", "softcap:50"}) {
    CHECK(refused_with([&](O& o) { o.scaling = {name}; }) ==
          "scaling: got " + std::string(name) +
              ", is no factor on q.k, which gradients are measured for");
  }
  CHECK(refused_with([](O& o) { o.entries.nu = 3; }).find("nu: got 3") == 0);
  CHECK(refused_with([](O& o) { o.sweep.samples = Index{1} << 50; }).find("the rows of a point") !=
        std::string::npos);
}

TEST_CASE("gradients without a fourth moment have no interval, those of the cotangent alone have") {
  GradientsOptions options;
  options.d_k = {4};
  options.keys = {3};
  options.entries.distribution = Distribution::student_t;
  options.entries.nu = 3;
  options.sweep.samples = 100;
  const GradientsResult result = gradients(options, {});
  CHECK_FALSE(result.rows[0].q.ci_low);
  CHECK_FALSE(result.rows[0].k.ci_high);
  CHECK(result.rows[0].v.ci_low);
  REQUIRE(result.notes.size() == 1);
  options.entries.nu = 5;
  CHECK(gradients(options, {}).rows[0].q.ci_low);
}

}  // namespace
}  // namespace attnlab
