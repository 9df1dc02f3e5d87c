// A decoder that keeps the keys and values of its steps gives, step by step, what it gives of the
// whole sequence at once: bit for bit in the tiled kernel, but for rounding in the full one.

#include <algorithm>

#include "attention/layer_case.h"

namespace attnlab {
namespace {

using test::error_of;
using test::Numbers;
using test::same_bits;
using test::says;
using test::some_params;

constexpr MultiHeadShape kLayer = {.d_query = 24,
                                   .d_key = 24,
                                   .d_value = 24,
                                   .d_output = 20,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .d_k = 6,
                                   .d_v = 5,
                                   .bias = true};

const Request kPresent = {"present_k", "present_v"};

// Rows [first, first + count) of [batch, n, d].
template <class T>
Tensor<T> rows_of(const Tensor<T>& all, Index first, Index count) {
  Tensor<T> rows({all.shape()[0], count, all.shape()[2]});
  for (Index b = 0; b < all.shape()[0]; ++b) {
    rows.matrix(b) = all.matrix(b).middleRows(first, count);
  }
  return rows;
}

struct Decoding {
  Index n;
  std::vector<Index> steps;  // how many positions each takes, over and over
  Index left = -1;
  std::optional<double> softcap = std::nullopt;
  Kernel kernel = Kernel::automatic;
  bool own_keys = false;  // bias_k, bias_v and one of zeros
};

Mask causal(Index batch, Index queries, Index past, Index left) {
  Mask mask(batch, kLayer.heads, queries, past + queries);
  mask.set_causal();
  mask.set_window(left, -1);
  mask.set_offset(past);
  return mask;
}

// The output of the whole sequence and that of its steps, with the present after the last of each.
template <class T>
std::pair<MultiHeadResult<T>, MultiHeadResult<T>> decode(const Decoding& of) {
  const Index batch = 2;
  auto params = some_params<T>(kLayer);
  if (of.own_keys) {
    params.bias_k = Numbers(7).tensor<T>({kLayer.kv_heads * kLayer.d_k});
    params.bias_v = Numbers(8).tensor<T>({kLayer.kv_heads * kLayer.d_v});
    params.add_zero_attn = true;
  }
  const auto x = Numbers(5).tensor<T>({batch, of.n, 24});
  const AttentionSettings settings{.scale = .4, .softcap = of.softcap, .kernel = of.kernel};
  auto whole = multi_head(x, x, x, params, causal(batch, of.n, 0, of.left), settings, kPresent);
  MultiHeadResult<T> steps;
  steps.output = Tensor<T>({batch, of.n, 20});
  std::optional<Past<T>> past;
  Index done = 0;
  for (std::size_t step = 0; done < of.n; ++step) {
    const Index count = std::min(of.steps[step % of.steps.size()], of.n - done);
    const auto now = rows_of(x, done, count);
    auto result = multi_head(now, now, now, params, causal(batch, count, done, of.left), settings,
                             kPresent, past ? &*past : nullptr);
    for (Index b = 0; b < batch; ++b) {
      steps.output.matrix(b).middleRows(done, count) = result.output.matrix(b);
    }
    past = Past<T>{*std::move(result.present_k), *std::move(result.present_v)};
    done += count;
  }
  steps.present_k = past->k;
  steps.present_v = past->v;
  return {std::move(whole), std::move(steps)};
}

template <class T>
void check_bits(const Decoding& of) {
  INFO(of.n << " positions, steps of " << of.steps[0] << ", window " << of.left);
  const auto [whole, steps] = decode<T>(of);
  CHECK(same_bits(steps.output, whole.output));
  CHECK(same_bits(*steps.present_k, *whole.present_k));
  CHECK(same_bits(*steps.present_v, *whole.present_v));
  CHECK(same_bits(*whole.present_k, whole.k));
  CHECK(whole.present_v->shape() == Shape{2, 2, of.n, 5});
}

TEST_CASE("steps with the past give the bits of the whole sequence") {
  for (const std::vector<Index>& steps : {std::vector<Index>{1}, {2}, {5, 1, 3}, {26, 14}}) {
    for (const Index left : {-1, 3}) {
      check_bits<double>({.n = 40, .steps = steps, .left = left});
      check_bits<float>({.n = 140, .steps = steps, .left = left, .softcap = 1.5});
    }
  }
  // The layer's own keys are in no present.
  check_bits<float>({.n = 300, .steps = {1, 7}, .own_keys = true});
  check_bits<double>({.n = 300, .steps = {280, 1}, .left = 3, .own_keys = true});
  // Over many tiles of keys, and many threads' shares of the whole.
  check_bits<float>({.n = 600, .steps = {1, 250, 1, 1, 30}});
  check_bits<double>({.n = 600, .steps = {300, 1}, .left = 280, .softcap = 2});
}

TEST_CASE("steps through the full kernel give the whole sequence but for rounding") {
  for (const std::vector<Index>& steps : {std::vector<Index>{1}, {5, 1, 3}}) {
    for (const Index left : {-1, 3}) {
      const Decoding of{
          .n = 40, .steps = steps, .left = left, .softcap = 1.5, .kernel = Kernel::full};
      const auto [whole, steps_taken] = decode<double>(of);
      CHECK(test::close(steps_taken.output, test::doubles(whole.output), 1e-14));
      const auto [narrow, narrow_steps] = decode<float>(of);
      CHECK(test::close(narrow_steps.output, test::doubles(narrow.output), 1e-5));
    }
  }
}

TEST_CASE("cross-attention to a past alone is that to the memory it was computed from") {
  const auto params = some_params<float>(kLayer);
  const auto x = Numbers(5).tensor<float>({2, 3, 24}),
             memory = Numbers(6).tensor<float>({2, 7, 24});
  Mask mask(2, 4, 3, 7);
  mask.set_key_lengths({7, 4});
  Request want = kPresent;
  want.add("weights");
  const auto first = multi_head(x, memory, memory, params, mask, {}, want);
  const Past<float> past{*first.present_k, *first.present_v};
  const Tensor<float> none({2, 0, 24});
  const auto again = multi_head(x, none, none, params, mask, {}, want, &past);
  CHECK(same_bits(again.output, first.output));
  CHECK(same_bits(*again.attention.weights, *first.attention.weights));
  CHECK(same_bits(*again.present_k, past.k));
  CHECK(again.k.shape() == Shape{2, 2, 0, 6});
}

TEST_CASE("a past that does not fit the layer is refused with both shapes") {
  const auto params = some_params<float>(kLayer);
  const Tensor<float> x({1, 2, 24});
  const auto error = [&](const Shape& k, const Shape& v, Index keys) {
    const Past<float> past{Tensor<float>(k), Tensor<float>(v)};
    return error_of([&] { multi_head(x, x, x, params, Mask(1, 4, 2, keys), {}, {}, &past); });
  };
  CHECK(error({1, 2, 3, 6}, {1, 2, 3, 5}, 5).empty());
  CHECK(error({1, 2, 0, 6}, {1, 2, 0, 5}, 2).empty());
  CHECK(says(error({1, 4, 3, 6}, {1, 4, 3, 5}, 5), {"past_k: got [1, 4, 3, 6]", "[1, 2, p, 6]"}));
  CHECK(says(error({2, 2, 3, 6}, {2, 2, 3, 5}, 5), {"past_k: got [2, 2, 3, 6]"}));
  CHECK(says(error({2, 3, 6}, {2, 3, 5}, 5), {"past_k: got [2, 3, 6]", "kv_heads, p, d_k"}));
  CHECK(says(error({1, 2, 3, 6}, {1, 2, 3, 6}, 5), {"past_v: got [1, 2, 3, 6]", "[1, 2, p, 5]"}));
  CHECK(says(error({1, 2, 3, 6}, {1, 2, 4, 5}, 5), {"past_v: got p = 4", "3 as in past_k"}));
  CHECK(says(error({1, 2, 3, 6}, {1, 2, 3, 5}, 2), {"mask: got [1, 4, 2, 2]", "[1, 4, 2, 5]"}));
}

}  // namespace
}  // namespace attnlab
