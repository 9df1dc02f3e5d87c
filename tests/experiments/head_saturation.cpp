#include <atomic>
#include <cmath>
#include <limits>

#include "attnlab/experiments/saturation.h"
#include "attnlab/stats/distributions.h"
#include "attnlab/stats/moments.h"
#include "attnlab/stats/softmax_theory.h"
#include "catch.h"
#include "experiments/identity.h"
#include "experiments/inputs.h"
#include "experiments/plain_row.h"

namespace attnlab {
namespace {

// Weights of drawn logits N(0, variance): those with key > query + ahead masked, and each query for
// which `empty` says so.
struct Drawn {
  Tensor<double> weights;
  std::vector<std::vector<double>> logits;  // of each row, over the keys it sees
};

template <class Empty>
Drawn drawn(const Shape& shape, double variance, Index ahead, const Empty& empty) {
  Drawn result{Tensor<double>(shape), {}};
  std::vector<float> z(static_cast<std::size_t>(shape.size()));
  fill_entries(z, {}, 7, stream_at(Stream::sample_logits, 0), 0);
  const Index m = shape[-1];
  for (Index row = 0; row < shape.size() / m; ++row) {
    const Index i = row % shape[-2];
    std::vector<double> logits;
    for (Index j = 0; j < m && j <= i + ahead && !empty(row); ++j) {
      logits.push_back(std::sqrt(variance) *
                       static_cast<double>(z[static_cast<std::size_t>(row * m + j)]));
    }
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    for (std::size_t j = 0; j < logits.size(); ++j) {
      result.weights[row * m + static_cast<Index>(j)] = std::exp(logits[j]) / total;
    }
    result.logits.push_back(logits);
  }
  return result;
}

Drawn drawn(const Shape& shape, double variance, Index ahead) {
  return drawn(shape, variance, ahead, [](Index) { return false; });
}

SaturationOptions of(AnyTensor weights) {
  SaturationOptions options;
  options.weights.values = std::move(weights);
  return options;
}

double plain_variance(const std::vector<double>& values) {
  double mean = 0, sum = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

TEST_CASE("a head of given weights says what a plain loop over its rows says") {
  const Shape shape{2, 3, 40, 6};  // more than a block of rows
  const auto empty = [](Index row) { return row == 1 || row == 170; };
  const Drawn given = drawn(shape, 4, 1, empty);
  SaturationOptions options = of(given.weights);
  options.near_zero = 0.02;
  options.quantiles = {0, 1};
  const SaturationResult result = saturation(options, {});
  REQUIRE(result.rows.size() == 3);
  for (std::size_t h = 0; h < 3; ++h) {
    INFO("head " << h);
    std::vector<PlainRow> plain;
    double seen = 0, entries = 0, near = 0, v = 0, share = 0, gap = 0, critical = 0, several = 0;
    double entropy_theory = 0, max_theory = 0, f2_theory = 0, effective = 0;
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t i = 0; i < 40; ++i) {
        const auto& logits = given.logits[(b * 3 + h) * 40 + i];
        if (logits.empty()) continue;
        plain.push_back(plain_row(logits, options.near_zero));
        const auto n = static_cast<double>(logits.size());
        seen += n;
        entries += n * n;
        near += plain.back().near_zero;
        effective += 1 / plain.back().sum_p2;
        critical += 2 * std::log(n);
        const double variance = logits.size() > 1 ? plain_variance(logits) : 0;
        entropy_theory += softmax_theory(logits.size(), variance).entropy;
        f2_theory += softmax_theory(logits.size(), variance).jacobian_f2;
        max_theory += expected_max_p(logits.size(), variance);
        if (logits.size() == 1) continue;
        ++several;
        v += variance;
        share += plain.back().entropy / std::log(n);
        gap += plain.back().gap;
      }
    }
    const auto rows = static_cast<double>(plain.size());
    const auto close = [](double value) { return Approx(value).epsilon(1e-10).margin(1e-14); };
    const SaturationRow& row = result.rows[h];
    CHECK(row.head == static_cast<Index>(h));
    CHECK_FALSE(row.d_k);
    CHECK_FALSE(row.scaling);
    CHECK(row.keys == 6);
    CHECK(row.samples == std::ssize(plain));
    CHECK(row.empty_rows == 80 - std::ssize(plain));
    CHECK(row.keys_seen.value() == close(seen / rows));
    CHECK(row.logit_variance.value() == close(v / several));
    CHECK(row.entropy_share.value() == close(share / several));
    CHECK(row.log_odds_gap.value() == close(gap / several));
    CHECK(row.critical_variance.value() == close(critical / rows));
    CHECK(row.max_p.mean == close(mean_of(plain, &PlainRow::max_p)));
    CHECK(row.sum_p2.mean == close(mean_of(plain, &PlainRow::sum_p2)));
    CHECK(row.entropy.mean == close(mean_of(plain, &PlainRow::entropy)));
    CHECK(row.jacobian_f2.mean == close(mean_of(plain, &PlainRow::jacobian_f2)));
    CHECK(row.trace.mean == close(mean_of(plain, &PlainRow::trace)));
    CHECK(row.lambda_max == close(mean_of(plain, &PlainRow::lambda_max)));
    CHECK(row.effective_keys == close(effective / rows));
    CHECK(row.near_zero_share == close(near / entries));
    CHECK(row.exact_zero_share == close((6 * rows - seen) / (6 * rows)));
    CHECK(row.entropy.theory.value() == close(entropy_theory / rows));
    CHECK(row.jacobian_f2.theory.value() == close(f2_theory / rows));
    CHECK(row.max_p.theory.value() == close(max_theory / rows));
    CHECK(row.trace.theory.value() == close(1 - row.sum_p2.theory.value()));
    CHECK(row.entropy.quantiles.at(0) <= row.entropy.mean);
    CHECK(row.entropy.quantiles.at(1) >= row.entropy.mean);
    // Unknown of weights.
    CHECK_FALSE(row.naive_nan_share);
    CHECK_FALSE(row.saturation);
    CHECK_FALSE(row.frozen_sum_p2);
    CHECK_FALSE(row.small_v_entropy);
  }
  CHECK(mentions(result.notes, "2 of 240 rows are 0 throughout"));
  CHECK(mentions(result.notes, "weights of the other rows are 0"));
}

TEST_CASE("the rows of random scores are what their theory says") {
  for (const double variance : {0.25, 1.0, 6.0}) {
    const SaturationOptions options = of(drawn({16, 40, 64}, variance, 64).weights);
    const SaturationResult result = saturation(options, {});
    Moments entropy, max_p, trace, v;
    for (const SaturationRow& row : result.rows) {
      entropy.add(row.entropy.mean / row.entropy.theory.value());
      max_p.add(row.max_p.mean / row.max_p.theory.value());
      trace.add(row.trace.mean / row.trace.theory.value());
      v.add(row.logit_variance.value());
    }
    INFO("v " << variance);
    CHECK(result.finding.ends_with(
        "0 of 16 have less entropy by 10% or more than random scores of their variance."));
    // 4.5 standard errors over the heads, and 1/64 for the variance of a row being known from it.
    CHECK(std::abs(v.mean - variance) < 4.5 * v.mean_std_error().value());
    CHECK(std::abs(entropy.mean - 1) < 4.5 * entropy.mean_std_error().value() + 1.0 / 64);
    CHECK(std::abs(max_p.mean - 1) < 4.5 * max_p.mean_std_error().value() + 1.0 / 64);
    CHECK(std::abs(trace.mean - 1) < 4.5 * trace.mean_std_error().value() + 1.0 / 64);
  }
}

TEST_CASE("a uniform head and one that picks a key have the ends of every metric") {
  const auto weights = given<float>({2, 2, 4}, {.25, .25, .25, .25, .25, .25, .25, .25,  //
                                                0, 1, 0, 0, 0, 0, 1, 0});
  const SaturationResult result = saturation(of(*weights.values), {});
  const SaturationRow &even = result.rows.at(0), &one = result.rows.at(1);
  CHECK(even.entropy.mean == Approx(std::log(4)));
  CHECK(even.entropy.theory.value() == Approx(std::log(4)));
  CHECK(even.max_p.theory == 0.25);
  CHECK(even.logit_variance == 0.0);
  CHECK(even.effective_keys == 4);
  CHECK(one.max_p.mean == 1);
  CHECK(one.entropy.mean == 0);
  CHECK(one.keys_seen == 1.0);
  CHECK(one.exact_zero_share == 0.75);
  // Of a single key there is no variance.
  CHECK_FALSE(one.logit_variance);
  CHECK_FALSE(one.entropy_share);
  CHECK_FALSE(one.log_odds_gap);
  CHECK(one.entropy.theory == 0.0);
  CHECK(result.finding.find("the most saturated is head 1, with 1 effective keys") !=
        std::string::npos);
  CHECK(result.finding.find("the least is head 0, with 4 and 1.39 nats") != std::string::npos);
  CHECK(result.finding.find("0 of 2 have less entropy by 10% or more") != std::string::npos);
}

TEST_CASE("a single matrix is a head without a number") {
  const SaturationResult result = saturation(of(drawn({5, 6}, 1, 6).weights), {});
  REQUIRE(result.rows.size() == 1);
  CHECK_FALSE(result.rows[0].head);
  CHECK_FALSE(result.rows[0].entropy.ci_low);
  CHECK(mentions(result.notes, "there are no intervals"));
  CHECK(result.finding.find("Over 6 keys the rows have ") == 0);
}

TEST_CASE("intervals are over batch entries, whose rows need not be as many") {
  // Entry 1 has two rows, the others three.
  const auto empty = [](Index row) { return row == 5; };
  const Drawn given = drawn({4, 1, 3, 5}, 2, 5, empty);
  const SaturationRow row = saturation(of(given.weights), {}).rows.at(0);
  double total = 0, off[4] = {}, around = 0;
  for (std::size_t r = 0; r < 12; ++r) {
    if (r != 5) total += plain_row(given.logits[r], 1).entropy / 11;
  }
  for (std::size_t r = 0; r < 12; ++r) {
    if (r != 5) off[r / 3] += (plain_row(given.logits[r], 1).entropy - total) * 4 / 11;
  }
  for (const double x : off) around += x * x / 3;
  // t of three degrees of freedom.
  const double reach = 3.1824463052837091 * std::sqrt(around / 4);
  CHECK(row.entropy.mean == Approx(total));
  CHECK(row.entropy.ci_low.value() == Approx(total - reach).epsilon(1e-9));
  CHECK(row.entropy.ci_high.value() == Approx(total + reach).epsilon(1e-9));
  SaturationOptions wider = of(given.weights);
  wider.sweep.confidence = 0.99;
  CHECK(saturation(wider, {}).rows.at(0).entropy.ci_low < row.entropy.ci_low);
}

TEST_CASE("an entry without rows is none to take an interval over") {
  const auto empty = [](Index row) { return row >= 3 && row < 6; };
  const Tensor<double> three = drawn({3, 1, 3, 5}, 2, 5, empty).weights;
  Tensor<double> two({2, 1, 3, 5});
  two.matrix(0) = three.matrix(0);
  two.matrix(1) = three.matrix(2);
  const SaturationRow with = saturation(of(three), {}).rows.at(0);
  const SaturationRow without = saturation(of(two), {}).rows.at(0);
  CHECK(with.entropy.ci_low.value() == Approx(without.entropy.ci_low.value()));
  CHECK(with.entropy.ci_high.value() == Approx(without.entropy.ci_high.value()));
  Tensor<double> one({2, 1, 3, 5});
  one.matrix(0) = three.matrix(0);
  CHECK_FALSE(saturation(of(one), {}).rows.at(0).entropy.ci_low);
}

TEST_CASE("heads have the same bits for any number of threads") {
  SaturationOptions options = of(drawn({2, 2, 90, 7}, 3, 2).weights);
  options.sweep.run.threads = 1;
  const std::string expected = bits_of_rows(saturation(options, {}).rows);
  for (const Index threads : {2, 5}) {
    options.sweep.run.threads = threads;
    CHECK(bits_of_rows(saturation(options, {}).rows) == expected);
  }
}

TEST_CASE("each head is told when it is known, and a run that is stopped says so") {
  const SaturationOptions options = of(drawn({3, 4, 5}, 1, 5).weights);
  std::atomic<bool> cancel = false;
  std::vector<std::string> told;
  double share = 0;
  Watch watch;
  watch.cancel = &cancel;
  watch.progress = [&](double now) { share = now; };
  watch.row = [&](const std::vector<ResultRef>& cells) {
    told.push_back(bits_of(cells));
    cancel = told.size() == 2;
  };
  const SaturationResult result = saturation(options, watch);
  CHECK(result.status.interrupted);
  CHECK(result.rows.size() == 2);
  CHECK(told.size() == 2);
  CHECK(told[1] == bits_of(result_of(result.rows[1])));
  CHECK(share == Approx(2.0 / 3));
}

TEST_CASE("16-bit weights may be further off 1, and small ones may be gone") {
  const auto sums_to = [](double sum, DType dtype) {
    const Tensor<double> row({1, 2}, {sum - 0.5, 0.5});
    return refusal([&] { saturation(of(AnyTensor(row).cast(dtype)), {}); });
  };
  CHECK(sums_to(1.00005, DType::float32).empty());
  CHECK(sums_to(1.0002, DType::float32)
            .find("got the sum 1.0002 in row [0], need 1 within 0.0001 "
                  "in float32, or 0 throughout") != std::string::npos);
  CHECK_FALSE(sums_to(0.9998, DType::float64).empty());
  CHECK(sums_to(1.0035, DType::float16).empty());
  CHECK_FALSE(sums_to(1.005, DType::float16).empty());
  CHECK(sums_to(1.008, DType::bfloat16).empty());
  CHECK_FALSE(sums_to(1.02, DType::bfloat16).empty());
  // They come in wider types too.
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const AnyTensor narrow = AnyTensor(Tensor<double>({1, 3}, {1 / 3.0, .6, .07})).cast(dtype);
    CHECK(refusal([&] { saturation(of(narrow.cast(DType::float32)), {}); }).empty());
    CHECK_FALSE(refusal([&] {
                  saturation(of(AnyTensor(Tensor<double>({1, 3}, {1 / 3.0, .6, .07}))), {});
                }).empty());
  }
  const std::string gone = "in 1 of 2 rows: where it is no mask but underflow";
  const Tensor<double> half({2, 3}, {1, 5e-7, 0, 1, 1e-5, 0});
  CHECK(mentions(saturation(of(AnyTensor(half).cast(DType::float16)), {}).notes, gone));
  CHECK_FALSE(mentions(saturation(of(half), {}).notes, gone));
  const Tensor<double> single({2, 3}, {1, 1e-35, 0, 1, 1e-35, 1e-36});
  CHECK(mentions(saturation(of(single), {}).notes, gone));
}

TEST_CASE("what no softmax gives is refused by its place") {
  const auto refused = [](const TensorSource& weights) {
    return refusal([&] { saturation(of(*weights.values), {}); });
  };
  CHECK(refused(given<double>({2, 1, 2}, {.5, .5, 1.5, -.5}))
            .find("weights: got -0.5 at [1, 0, 1], need weights of 0 or more") !=
        std::string::npos);
  CHECK(refused(given<double>({1, 2}, {std::nan(""), 1})).find("got nan at [0, 0]") !=
        std::string::npos);
  CHECK(refused(given<double>({1, 2}, {1, std::numeric_limits<double>::infinity()}))
            .find("got inf at [0, 1]") != std::string::npos);
  CHECK(refused(given<double>({2, 2, 2}, {.5, .5, .5, .5, .5, .5, .5, .4}))
            .find("got the sum 0.9 in row [1, 1]") != std::string::npos);
  CHECK(refused(given<double>({2, 1, 2}, {.5, .5, 0, 0})).find("head 1 all 0") !=
        std::string::npos);
  CHECK(refused(given<double>({3}, {1, 0, 0})).find("got [3], need a matrix") != std::string::npos);
  CHECK(refused(given<double>({2, 0}, {})).find("got [2, 0], need a row") != std::string::npos);
}

TEST_CASE("options of drawn scores are refused beside given weights") {
  const auto refused = [](auto change) {
    SaturationOptions options = of(Tensor<double>({1, 2}, {.5, .5}));
    change(options);
    return refusal([&] { saturation(options, {}); });
  };
  const std::string rule = "is for scores that are drawn";
  CHECK(refused([](auto& o) { o.d_k = {3}; }).find("d_k: got 3, " + rule) != std::string::npos);
  CHECK(refused([](auto& o) { o.keys = {3}; }).find("keys: got 3, " + rule) != std::string::npos);
  CHECK(refused([](auto& o) { o.logits = Logits::iid; }).find("logits: got iid") !=
        std::string::npos);
  CHECK(refused([](auto& o) { o.sweep.samples = 5; }).find("samples: got 5") != std::string::npos);
  CHECK(refused([](auto& o) { o.sweep.shard = "1/2"; }).find("shard: got 1/2") !=
        std::string::npos);
  CHECK(refused([](auto& o) { o.sweep.resume.path = "r.jsonl"; }).find("resume") !=
        std::string::npos);
  CHECK(refused([](auto& o) { o.sweep.run.seed = 2; }).find("seed: got 2") != std::string::npos);
  CHECK(refused([](auto& o) { o.near_zero = 2, o.sweep.run.threads = 2; }).empty());
  const std::vector<StatePart> parts;
  Watch watch;
  watch.parts = &parts;
  CHECK(refusal([&] {
          saturation(of(Tensor<double>({1, 1}, {1})), watch);
        }).find("are measured whole") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
