#include "attention/attention_test.h"
#include "attnlab/core/random.h"

namespace attnlab {
namespace {

using test::no_mask;
using test::same_bits;

// Q = K = 0 and V the identity: the output is the weights after dropout.
template <class T>
struct Uniform {
  Tensor<T> q, k, v;
};

template <class T>
Uniform<T> uniform(Index heads, Index n, Index m) {
  Uniform<T> in{Tensor<T>({1, heads, n, 1}), Tensor<T>({1, heads, m, 1}),
                Tensor<T>({1, heads, m, m})};
  for (Index h = 0; h < heads; ++h) in.v.matrix(h).setIdentity();
  return in;
}

TEST_CASE("dropped weights are 0 and kept ones divided by the share kept") {
  const auto in = uniform<double>(1, 1, 2);
  int sums[3] = {0, 0, 0};
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    const auto result = scaled_dot_product(in.q, in.k, in.v, no_mask(in.q, in.k),
                                           {.dropout = .5, .seed = seed}, {"weights"});
    for (const double weight : result.weights->values()) CHECK(weight == .5);
    for (const double applied : result.output.values()) CHECK((applied == 0 || applied == 1));
    ++sums[static_cast<int>(result.output[0] + result.output[1])];
  }
  CHECK(sums[0] > 0);
  CHECK(sums[1] > 0);
  CHECK(sums[2] > 0);
}

TEST_CASE("which weights are dropped follows from seed, row and key alone") {
  const Index heads = 2, n = 70, m = 11;
  const auto in = uniform<float>(heads, n, m);
  const auto result =
      scaled_dot_product(in.q, in.k, in.v, no_mask(in.q, in.k), {.dropout = .3, .seed = 5});
  Index dropped = 0;
  for (Index row = 0; row < heads * n; ++row) {
    for (Index j = 0; j < m; ++j) {
      const PhiloxCounter bits = random_block(5, Stream::dropout, static_cast<std::uint64_t>(row),
                                              static_cast<std::uint32_t>(j / 4));
      const bool drop = uniform_of(bits[static_cast<std::size_t>(j % 4)]) < .3;
      dropped += drop ? 1 : 0;
      const float kept = 1.0f / static_cast<float>(m) / 0.7f;
      CHECK(result.output[row * m + j] == (drop ? 0 : kept));
    }
  }
  // 1540 draws of probability .3: within 5 standard deviations (false alarm 6e-7).
  CHECK(std::abs(static_cast<double>(dropped) - 462) < 5 * std::sqrt(1540 * .3 * .7));
}

TEST_CASE("a window does not change the fate of a weight") {
  const Index n = 100, m = 100;  // a second block of queries starts beyond key 0
  const auto in = uniform<double>(1, n, m);
  const AttentionSettings settings{.dropout = .5, .seed = 9};
  const auto open = scaled_dot_product(in.q, in.k, in.v, no_mask(in.q, in.k), settings);
  Mask mask = no_mask(in.q, in.k);
  mask.set_window(6, 3);
  const auto windowed = scaled_dot_product(in.q, in.k, in.v, mask, settings);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      const bool seen = j >= i - 6 && j <= i + 3;
      const bool kept = open.output.matrix()(i, j) > 0;
      CHECK((windowed.output.matrix()(i, j) > 0) == (seen && kept));
    }
  }
}

TEST_CASE("dropout is off by default, differs by seed, and hides no NaN") {
  const auto in = uniform<double>(1, 3, 9);
  const auto run = [&](double share, std::uint64_t seed) {
    return scaled_dot_product(in.q, in.k, in.v, no_mask(in.q, in.k),
                              {.dropout = share, .seed = seed})
        .output;
  };
  const auto off = scaled_dot_product(in.q, in.k, in.v, no_mask(in.q, in.k), {}).output;
  CHECK(same_bits(run(0, 1), off));
  CHECK(same_bits(run(.5, 1), run(.5, 1)));
  CHECK_FALSE(same_bits(run(.5, 1), run(.5, 2)));
  Tensor<double> q({1, 1, 3, 1}, test::kNan);
  const auto nan = scaled_dot_product(q, in.k, in.v, no_mask(q, in.k), {.dropout = .9});
  for (const double value : nan.output.values()) CHECK(std::isnan(value));
}

}  // namespace
}  // namespace attnlab
