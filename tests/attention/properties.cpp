#include <algorithm>
#include <numeric>

#include "attention/attention_test.h"

namespace attnlab {
namespace {

using test::no_mask;
using test::same_bits;

template <class T>
struct Inputs {
  Tensor<T> q, k, v;
};

template <class T>
Inputs<T> draw(Index batch, Index heads, Index kv_heads, Index n, Index m, Index d_k, Index d_v) {
  test::Numbers numbers(static_cast<std::uint64_t>(n + m));
  auto q = numbers.tensor<T>({batch, heads, n, d_k});
  auto k = numbers.tensor<T>({batch, kv_heads, m, d_k});
  auto v = numbers.tensor<T>({batch, kv_heads, m, d_v});
  return {std::move(q), std::move(k), std::move(v)};
}

template <class T>
double largest_difference(const Tensor<T>& a, const Tensor<T>& b) {
  double largest = 0;
  for (Index i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

TEST_CASE("weights are 0 or more and each row sums to 1") {
  const auto in = draw<float>(2, 2, 1, 70, 300, 8, 4);
  Mask mask = no_mask(in.q, in.k);
  mask.set_causal();
  const auto result = scaled_dot_product(in.q, in.k, in.v, mask, {.scale = 3}, {"weights"});
  for (Index row = 0; row < 2 * 2 * 70; ++row) {
    double sum = 0;
    for (Index j = 0; j < 300; ++j) {
      const float weight = (*result.weights)[row * 300 + j];
      CHECK(weight >= 0);
      sum += static_cast<double>(weight);
    }
    CHECK(sum == Approx(1).margin(1e-6));
  }
}

TEST_CASE("the same number added to every score of a row changes nothing") {
  const auto in = draw<double>(1, 2, 2, 9, 11, 4, 3);
  Mask shifted = no_mask(in.q, in.k);
  test::Numbers numbers;
  shifted.set_additive(numbers.tensor<double>({2, 9, 1}, 50));
  const auto a = scaled_dot_product(in.q, in.k, in.v, no_mask(in.q, in.k), {});
  const auto b = scaled_dot_product(in.q, in.k, in.v, shifted, {});
  CHECK(largest_difference(a.output, b.output) < 1e-13);
}

TEST_CASE("keys, values and masks in another order give the same output") {
  const Index n = 9, m = 13;
  const auto in = draw<double>(2, 2, 1, n, m, 4, 3);
  test::Numbers numbers;
  const auto bias = numbers.tensor<double>({n, m});
  Tensor<bool> boolean({2, 1, n, m});
  for (bool& value : boolean.values()) value = numbers.flip();
  auto [q, k, v] = in;
  Tensor<double> other_bias = bias;
  Tensor<bool> other_boolean = boolean;
  for (Index j = 0; j < m; ++j) {
    const Index to = (j * 5 + 3) % m;
    for (Index x = 0; x < 2; ++x) {
      k.matrix(x).row(to) = in.k.matrix(x).row(j);
      v.matrix(x).row(to) = in.v.matrix(x).row(j);
      other_boolean.matrix(x).col(to) = boolean.matrix(x).col(j);
    }
    other_bias.matrix().col(to) = bias.matrix().col(j);
  }
  Mask mask = no_mask(q, k), other_mask = no_mask(q, k);
  mask.set_additive(bias);
  mask.set_boolean(std::move(boolean));
  other_mask.set_additive(other_bias);
  other_mask.set_boolean(std::move(other_boolean));
  const auto a = scaled_dot_product(in.q, in.k, in.v, mask, {});
  const auto b = scaled_dot_product(q, k, v, other_mask, {});
  CHECK(largest_difference(a.output, b.output) < 1e-14);
}

TEST_CASE("a batch entry does not depend on the others") {
  const auto in = draw<float>(3, 4, 2, 66, 40, 8, 5);
  const auto entry = [](const Tensor<float>& t) {
    Tensor<float> one({1, t.shape()[1], t.shape()[2], t.shape()[3]});
    std::copy_n(t.data() + one.size(), one.size(), one.data());
    return one;
  };
  Mask mask = no_mask(in.q, in.k);
  mask.set_key_lengths({40, 17, 3});
  const auto all = scaled_dot_product(in.q, in.k, in.v, mask, {});
  Mask one_mask(1, 4, 66, 40);
  one_mask.set_key_lengths({17});
  const auto one = scaled_dot_product(entry(in.q), entry(in.k), entry(in.v), one_mask, {});
  CHECK(same_bits(entry(all.output), one.output));
}

TEST_CASE("under a causal mask later keys do not change earlier rows") {
  const auto in = draw<double>(1, 2, 2, 50, 50, 8, 5);
  auto [q, k, v] = in;
  for (Index x = 0; x < 2; ++x) {
    k.matrix(x).bottomRows(20).setConstant(1e6);
    v.matrix(x).bottomRows(20).setConstant(test::kNan);
  }
  Mask mask = no_mask(q, k);
  mask.set_causal();
  const auto before = scaled_dot_product(in.q, in.k, in.v, mask, {});
  const auto after = scaled_dot_product(q, k, v, mask, {});
  for (Index x = 0; x < 2; ++x) {
    CHECK(before.output.matrix(x).topRows(30) == after.output.matrix(x).topRows(30));
  }
  // Keys that the last query does not see may be there or not.
  const auto longer = append_keys(in.k, in.k, "k"), more = append_keys(in.v, in.v, "v");
  Mask longer_mask = no_mask(q, longer);
  longer_mask.set_causal();
  CHECK(same_bits(scaled_dot_product(in.q, longer, more, longer_mask, {}).output, before.output));
}

// Every option that has a say in the arithmetic, over several blocks of queries.
Mask busy_mask(Index batch, Index heads, Index n, Index m) {
  test::Numbers numbers(3);
  Mask mask(batch, heads, n, m);
  mask.set_causal();
  mask.set_offset(m - n);
  mask.set_window(100, -1);
  mask.set_key_lengths({m, m - 30});
  mask.set_additive(numbers.tensor<float>({heads, 1, m}));
  Tensor<bool> boolean({n, m});
  for (bool& value : boolean.values()) value = numbers.next() < 0.9;
  mask.set_boolean(std::move(boolean));
  return mask;
}

template <class T>
void check_matrices_asked_for() {
  auto [q, k, v] = draw<T>(2, 4, 2, 150, 170, 20, 9);
  v.matrix(1)(70, 3) = static_cast<T>(test::kNan);
  const Mask mask = busy_mask(2, 4, 150, 170);
  const AttentionSettings settings{.scale = .3, .softcap = 2, .dropout = .2};
  const auto none = scaled_dot_product(q, k, v, mask, settings);
  CHECK_FALSE(none.raw_scores);
  CHECK_FALSE(none.scores);
  CHECK_FALSE(none.capped_scores);
  CHECK_FALSE(none.masked_scores);
  CHECK_FALSE(none.weights);
  const auto all = scaled_dot_product(q, k, v, mask, settings, test::kAllMatrices);
  CHECK(same_bits(none.output, all.output));
  CHECK(none.empty_rows == all.empty_rows);
  const auto raw = scaled_dot_product(q, k, v, mask, settings, {"raw_scores"});
  CHECK(same_bits(none.output, raw.output));
  CHECK(same_bits(*raw.raw_scores, *all.raw_scores));
  CHECK_FALSE(raw.weights);
  const auto weights = scaled_dot_product(q, k, v, mask, settings, {"weights"});
  CHECK(same_bits(none.output, weights.output));
  CHECK(same_bits(*weights.weights, *all.weights));
}

TEST_CASE("asking for matrices changes no bit of the output, and of no other matrix") {
  check_matrices_asked_for<float>();
  check_matrices_asked_for<double>();
}

TEST_CASE("the number of threads changes no bit") {
  const auto in = draw<float>(2, 4, 2, 150, 170, 20, 9);
  const Mask mask = busy_mask(2, 4, 150, 170);
  AttentionSettings settings{.dropout = .1, .threads = 1};
  const auto one = scaled_dot_product(in.q, in.k, in.v, mask, settings, test::kAllMatrices);
  for (const Index threads : {0, 2, 3, 8}) {
    settings.threads = threads;
    const auto many = scaled_dot_product(in.q, in.k, in.v, mask, settings, test::kAllMatrices);
    CHECK(same_bits(one.output, many.output));
    CHECK(same_bits(*one.weights, *many.weights));
    CHECK(same_bits(*one.masked_scores, *many.masked_scores));
    CHECK(one.empty_rows == many.empty_rows);
  }
}

TEST_CASE("float32 is close to float64") {
  const auto in = draw<float>(2, 4, 2, 70, 90, 20, 9);
  const auto wide = [](const Tensor<float>& t) { return AnyTensor(t).cast<double>(); };
  const Mask mask = busy_mask(2, 4, 70, 90);
  const auto narrow = scaled_dot_product(in.q, in.k, in.v, mask, {});
  const auto exact = scaled_dot_product(wide(in.q), wide(in.k), wide(in.v), mask, {});
  CHECK(largest_difference(wide(narrow.output), exact.output) < 1e-6);
}

}  // namespace
}  // namespace attnlab
