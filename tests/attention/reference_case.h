#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "attention/attention_test.h"
#include "tests/reference.h"

namespace attnlab::test {

// A combination of sizes and options that the library and the plain loops both compute.
struct Case {
  Index batch = 1, heads = 1, kv_heads = 1, n = 1, m = 1, d_k = 1, d_v = 1;
  bool causal = false, window = false, lengths = false, boolean = false, additive = false,
       softcap = false, dropout = false, alibi = false;
};

// The case with the options of the set bits.
inline Case with_options(Case c, int options) {
  c.causal = (options & 1) != 0;
  c.window = (options & 2) != 0;
  c.lengths = (options & 4) != 0;
  c.boolean = (options & 8) != 0;
  c.additive = (options & 16) != 0;
  c.softcap = (options & 32) != 0;
  c.dropout = (options & 64) != 0;
  c.alibi = (options & 128) != 0;
  return c;
}

inline std::string name_of(const Case& c) {
  std::string text = "batch, heads, kv_heads, n, m, d_k, d_v:";
  for (const Index size : {c.batch, c.heads, c.kv_heads, c.n, c.m, c.d_k, c.d_v}) {
    text += ' ';
    text += std::to_string(size);
  }
  for (const auto& [on, name] :
       {std::pair(c.causal, " causal"), std::pair(c.window, " window"),
        std::pair(c.lengths, " lengths"), std::pair(c.boolean, " boolean"),
        std::pair(c.additive, " additive"), std::pair(c.softcap, " softcap"),
        std::pair(c.dropout, " dropout"), std::pair(c.alibi, " alibi")}) {
    if (on) text += name;
  }
  return text;
}

template <class T>
std::size_t at(const Tensor<T>& t, std::size_t b, std::size_t h, std::size_t i, std::size_t j) {
  const auto axis = [&](int a) { return static_cast<std::size_t>(t.shape()[a]); };
  return ((b * axis(1) + h) * axis(2) + i) * axis(3) + j;
}

// Both sides are given the mask apart: the library as its parts, the loops as one condition.
template <class T>
struct DrawnCase {
  Tensor<T> q, k, v;
  Mask mask;
  AttentionSettings settings;
  reference::Call call;
};

template <class T>
DrawnCase<T> draw_case(const Case& c) {
  Numbers numbers(static_cast<std::uint64_t>(c.n * 100 + c.m));
  const auto q = numbers.tensor<T>({c.batch, c.heads, c.n, c.d_k});
  const auto k = numbers.tensor<T>({c.batch, c.kv_heads, c.m, c.d_k});
  const auto v = numbers.tensor<T>({c.batch, c.kv_heads, c.m, c.d_v});
  Tensor<bool> boolean({c.batch, c.heads, c.n, c.m});
  for (bool& value : boolean.values()) value = numbers.next() < 0.4;
  auto additive = numbers.tensor<T>({c.batch, c.heads, c.n, c.m}, 3);
  for (T& value : additive.values()) {
    if (numbers.next() < -0.6) value = -std::numeric_limits<T>::infinity();
  }
  std::vector<Index> offsets, lengths;
  for (Index b = 0; b < c.batch; ++b) {
    offsets.push_back(c.m - c.n + b - 1);
    lengths.push_back(std::max<Index>(0, c.m - 2 * b - 1));
  }

  Mask mask(c.batch, c.heads, c.n, c.m);
  mask.set_offsets(offsets);
  if (c.causal) mask.set_causal();
  if (c.window) mask.set_window(3, 1);
  if (c.lengths) mask.set_key_lengths(lengths);
  if (c.boolean) mask.set_boolean(boolean);
  if (c.additive) mask.set_additive(additive);
  std::vector<double> slopes;
  for (Index h = 0; h < c.heads; ++h) slopes.push_back(.3 / static_cast<double>(h + 1));
  if (c.alibi) mask.set_alibi(slopes);
  AttentionSettings settings{.scale = -0.7};
  if (c.softcap) settings.softcap = 1.5;
  if (c.dropout) settings.dropout = 0.3;

  reference::Call call;
  const auto size = [](Index length) { return static_cast<std::size_t>(length); };
  call.batch = size(c.batch), call.heads = size(c.heads), call.kv_heads = size(c.kv_heads);
  call.n = size(c.n), call.m = size(c.m), call.d_k = size(c.d_k), call.d_v = size(c.d_v);
  call.q = doubles(q), call.k = doubles(k), call.v = doubles(v);
  call.scale = -0.7;
  call.softcap = settings.softcap;
  call.sees = [=](std::size_t b, std::size_t h, std::size_t i, std::size_t j) {
    const auto diagonal = static_cast<Index>(i) + offsets[b], key = static_cast<Index>(j);
    if (c.causal && key > diagonal) return false;
    if (c.window && (key < diagonal - 3 || key > diagonal + 1)) return false;
    if (c.lengths && key >= lengths[b]) return false;
    if (c.boolean && !boolean.data()[at(boolean, b, h, i, j)]) return false;
    return !c.additive || !std::isinf(additive.data()[at(additive, b, h, i, j)]);
  };
  call.bias = [=](std::size_t b, std::size_t h, std::size_t i, std::size_t j) {
    const double distance =
        std::abs(static_cast<double>(static_cast<Index>(i) + offsets[b]) - static_cast<double>(j));
    return (c.additive ? static_cast<double>(additive.data()[at(additive, b, h, i, j)]) : 0.0) -
           (c.alibi ? slopes[h] * distance : 0.0);
  };
  return {q, k, v, std::move(mask), settings, std::move(call)};
}

}  // namespace attnlab::test
