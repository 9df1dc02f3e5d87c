#include "attnlab/experiments/saturation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "experiments/inputs.h"
#include "experiments/plain_row.h"

namespace attnlab {
namespace {

std::vector<float> entries(std::size_t d, const EntryLaw& law, Stream role, std::uint64_t point,
                           std::uint64_t number, std::uint64_t seed = 0) {
  std::vector<float> values(d);
  fill_entries(values, law, seed, stream_at(role, point), number);
  return values;
}

double plain_dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

template <class Test>
double share_of(const std::vector<PlainRow>& rows, const Test& test) {
  return static_cast<double>(std::count_if(rows.begin(), rows.end(), test)) /
         static_cast<double>(rows.size());
}

double plain_quantile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const double h = p * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(h);
  const double part = h - static_cast<double>(low);
  return values[low] + (part > 0 ? part * (values[low + 1] - values[low]) : 0);
}

void check_row(const SaturationRow& row, const std::vector<PlainRow>& plain) {
  INFO("d_k " << row.d_k.value_or(0) << ", keys " << row.keys << ", "
              << row.scaling.value_or("iid"));
  const auto close = [](double value) { return Approx(value).epsilon(1e-10).margin(1e-15); };
  const auto n = static_cast<double>(row.keys);
  CHECK(row.samples == std::ssize(plain));
  CHECK(row.max_p.mean == close(mean_of(plain, &PlainRow::max_p)));
  CHECK(row.sum_p2.mean == close(mean_of(plain, &PlainRow::sum_p2)));
  CHECK(row.entropy.mean == close(mean_of(plain, &PlainRow::entropy)));
  CHECK(row.jacobian_f2.mean == close(mean_of(plain, &PlainRow::jacobian_f2)));
  CHECK(row.trace.mean == close(mean_of(plain, &PlainRow::trace)));
  CHECK(row.lambda_max == close(mean_of(plain, &PlainRow::lambda_max)));
  CHECK(row.log_odds_gap.value_or(0) == close(mean_of(plain, &PlainRow::gap)));
  double effective = 0, perplexity = 0;
  std::vector<double> norms;
  for (const PlainRow& one : plain) {
    effective += 1 / one.sum_p2 / static_cast<double>(plain.size());
    perplexity += std::exp(one.entropy) / static_cast<double>(plain.size());
    norms.push_back(std::sqrt(one.jacobian_f2));
  }
  CHECK(row.effective_keys == close(effective));
  CHECK(row.perplexity == close(perplexity));
  CHECK(row.jacobian_f_rms == close(std::sqrt(row.jacobian_f2.mean)));
  CHECK(row.jacobian_f_median.value() == close(plain_quantile(norms, 0.5)));
  if (row.keys > 1) {
    CHECK(row.entropy_share.value() == close(row.entropy.mean / std::log(n)));
  }
  CHECK(row.share_max_above_9 == share_of(plain, [](auto& r) { return r.max_p > 0.9; }));
  CHECK(row.share_max_above_99 == share_of(plain, [](auto& r) { return r.max_p > 0.99; }));
  CHECK(row.share_max_above_999 == share_of(plain, [](auto& r) { return r.max_p > 0.999; }));
  CHECK(row.near_zero_share == close(mean_of(plain, &PlainRow::near_zero) / n / n));
  CHECK(row.max_one_share == share_of(plain, [](auto& r) { return r.max_is_one; }));
  CHECK(row.naive_nan_share == share_of(plain, [](auto& r) { return r.naive_nan; }));
  // A weight at the very edge may be rounded either way by the division.
  const double edge = 3 / (static_cast<double>(plain.size()) * n);
  CHECK(std::abs(row.exact_zero_share - mean_of(plain, &PlainRow::exact_zero) / n) <= edge);
  CHECK(std::abs(row.subnormal_share - mean_of(plain, &PlainRow::subnormal) / n) <= edge);
}

TEST_CASE("the rows of dot products are those of a plain loop over the same draws") {
  SaturationOptions options;
  options.d_k = {3, 40};
  options.keys = {1, 2, 17};
  options.scaling = {
      "none",      "inv_sqrt_d", "inv_d",     "inv_sqrt_d_sigma2",     "critical",         "0.01",
      "qk_norm:5", "cosine:10",  "softcap:2", "scalable_softmax:0.43", "log_n_over_sqrt_d"};
  options.entries = {Distribution::laplace, std::nullopt, 1.25};
  options.near_zero = 0.02;
  options.sweep.samples = 150;
  options.sweep.run.seed = 3;
  const SaturationResult result = saturation(options, {});
  REQUIRE(result.rows.size() == 6 * 11);
  const EntryLaw law = entry_law(options.entries);
  std::size_t at = 0;
  for (std::uint64_t point = 0; point < 6; ++point) {
    const auto d = static_cast<std::size_t>(options.d_k[point / 3]);
    const auto n = static_cast<std::size_t>(options.keys[point % 3]);
    const double root = std::sqrt(static_cast<double>(d)), size = static_cast<double>(d);
    const double log_n = std::log(static_cast<double>(n));
    std::vector<std::vector<PlainRow>> plain(11);
    for (std::uint64_t row = 0; row < 150; ++row) {
      const auto q = entries(d, law, Stream::sample_q, point, row, 3);
      std::vector<std::vector<double>> logits(11);
      for (std::uint64_t j = 0; j < n; ++j) {
        const auto k = entries(d, law, Stream::sample_k, point, row * n + j, 3);
        const double score = plain_dot(q, k);
        const double cosine = score / std::sqrt(plain_dot(q, q) * plain_dot(k, k));
        const std::vector<double> scaled = {score,
                                            score / root,
                                            score / size,
                                            score / root / 1.25 / 1.25,
                                            score * std::sqrt(2 * log_n) / root,
                                            score * 0.01,
                                            5 * cosine,
                                            10 * cosine,
                                            2 * std::tanh(score / root / 2),
                                            0.43 * log_n * score / root,
                                            log_n * score / root};
        for (std::size_t s = 0; s < 11; ++s) logits[s].push_back(scaled[s]);
      }
      for (std::size_t s = 0; s < 11; ++s) plain[s].push_back(plain_row(logits[s], 0.02));
    }
    for (std::size_t s = 0; s < 11; ++s, ++at) {
      CHECK(result.rows[at].d_k == static_cast<Index>(d));
      CHECK(result.rows[at].keys == static_cast<Index>(n));
      CHECK(result.rows[at].scaling == options.scaling[s]);
      // The theory is that of normal entries.
      CHECK_FALSE(result.rows[at].sum_p2.theory);
      check_row(result.rows[at], plain[s]);
    }
  }
}

TEST_CASE("independent logits have the variance that is asked for, and quantiles of their rows") {
  SaturationOptions options;
  options.logits = Logits::iid;
  options.logit_variance = {0, 1, 400, 4000};
  options.keys = {2, 30};
  options.quantiles = {0, 0.1, 0.5, 1};
  options.sweep.samples = 130;
  const SaturationResult result = saturation(options, {});
  REQUIRE(result.rows.size() == 8);
  for (std::size_t point = 0; point < 2; ++point) {
    const auto n = static_cast<std::size_t>(options.keys[point]);
    for (std::size_t s = 0; s < 4; ++s) {
      std::vector<PlainRow> plain;
      std::vector<double> entropies;
      for (std::uint64_t row = 0; row < 130; ++row) {
        std::vector<double> logits;
        for (const float z : entries(n, {}, Stream::sample_logits, point, row)) {
          logits.push_back(std::sqrt(options.logit_variance[s]) * static_cast<double>(z));
        }
        plain.push_back(plain_row(logits, options.near_zero));
        entropies.push_back(plain.back().entropy);
      }
      const SaturationRow& row = result.rows[4 * point + s];
      CHECK_FALSE(row.d_k);
      CHECK_FALSE(row.scaling);
      CHECK(row.logit_variance == options.logit_variance[s]);
      check_row(row, plain);
      REQUIRE(row.entropy.quantiles.size() == 4);
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(row.entropy.quantiles[i] ==
              Approx(plain_quantile(entropies, options.quantiles[i])).epsilon(1e-10).margin(1e-15));
      }
    }
  }
  options.quantiles.clear();
  options.logit_variance.clear();
  const SaturationResult usual = saturation(options, {});
  REQUIRE(usual.rows.size() == 6);
  CHECK(usual.rows[0].logit_variance == 0.25);
  CHECK(usual.rows[2].logit_variance == 4);
  CHECK(usual.rows[0].entropy.quantiles.empty());
}

TEST_CASE("reused keys are the same for the rows of a block, and so is what is sure of them") {
  SaturationOptions options;
  options.d_k = {5};
  options.keys = {7};
  options.scaling = {"inv_sqrt_d"};
  options.key_draw = KeyDraw::reuse;
  options.sweep.samples = 64 * 5;
  const SaturationRow row = saturation(options, {}).rows.at(0);
  std::vector<PlainRow> plain;
  std::vector<double> blocks(5);
  for (std::uint64_t trial = 0; trial < 64 * 5; ++trial) {
    const auto q = entries(5, {}, Stream::sample_q, 0, trial);
    std::vector<double> logits;
    for (std::uint64_t j = 0; j < 7; ++j) {
      const auto k = entries(5, {}, Stream::sample_k, 0, trial / 64 * 7 + j);
      logits.push_back(plain_dot(q, k) / std::sqrt(5.0));
    }
    plain.push_back(plain_row(logits, options.near_zero));
    blocks[trial / 64] += plain.back().sum_p2 / 64;
  }
  check_row(row, plain);
  double around = 0;
  for (const double block : blocks) around += std::pow(block - row.sum_p2.mean, 2) / 4;
  // t of four degrees of freedom.
  const double reach = 2.7764451051977987 * std::sqrt(around / 5);
  CHECK(row.sum_p2.ci_low.value() == Approx(row.sum_p2.mean - reach).epsilon(1e-10));
  CHECK(row.sum_p2.ci_high.value() == Approx(row.sum_p2.mean + reach).epsilon(1e-10));
}

TEST_CASE("the queries of a block are each their own where keys are too many for all at once") {
  SaturationOptions options;
  options.d_k = {2};
  options.keys = {6000};
  options.scaling = {"inv_sqrt_d"};
  options.entries.distribution = Distribution::uniform;
  options.key_draw = KeyDraw::reuse;
  options.sweep.samples = 66;
  const SaturationRow row = saturation(options, {}).rows.at(0);
  const EntryLaw law = entry_law(options.entries);
  double max_p = 0, sum_p2 = 0;
  for (std::uint64_t trial = 0; trial < 66; ++trial) {
    const auto q = entries(2, law, Stream::sample_q, 0, trial);
    double total = 0, squares = 0, largest = 0;
    for (std::uint64_t j = 0; j < 6000; ++j) {
      const auto k = entries(2, law, Stream::sample_k, 0, trial / 64 * 6000 + j);
      const double power = std::exp(plain_dot(q, k) / std::sqrt(2.0));
      total += power;
      squares += power * power;
      largest = std::max(largest, power);
    }
    max_p += largest / total / 66;
    sum_p2 += squares / total / total / 66;
  }
  CHECK(row.max_p.mean == Approx(max_p).epsilon(1e-12));
  CHECK(row.sum_p2.mean == Approx(sum_p2).epsilon(1e-12));
}

TEST_CASE("one key has all the weight and no entropy share") {
  SaturationOptions options;
  options.d_k = {4};
  options.keys = {1};
  options.sweep.samples = 70;
  const SaturationRow row = saturation(options, {}).rows.at(0);
  CHECK(row.max_p.mean == 1);
  CHECK(row.entropy.mean == 0);
  CHECK(row.trace.mean == 0);
  CHECK(row.lambda_max == 0);
  CHECK(row.max_one_share == 1);
  CHECK(row.near_zero_share == 1);
  CHECK_FALSE(row.entropy_share);
  CHECK_FALSE(row.log_odds_gap);
  CHECK(row.critical_variance == 0.0);
}

}  // namespace
}  // namespace attnlab
