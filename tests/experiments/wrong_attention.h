#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "attnlab/experiments/diagnose.h"
#include "experiments/inputs.h"
#include "reference.h"

// Attention with one mistake or another, in plain loops that share nothing with the library.

namespace attnlab {

using Numbers = std::vector<double>;

// Entries that no two tensors share, between -1.5 and 1.5.
inline Numbers entries(std::size_t count, double phase) {
  Numbers values;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    values.push_back(1.5 * std::sin(12.9898 * x + 1.3 * x * x + phase));
  }
  return values;
}

inline TensorSource source(const Shape& shape, const Numbers& values) {
  Tensor<double> tensor(shape);
  std::copy(values.begin(), values.end(), tensor.data());
  return {.path = {}, .values = AnyTensor(std::move(tensor))};
}

inline Index size(std::size_t value) { return static_cast<Index>(value); }

// q, k and v of the sizes, and the options and the plain call that have them.
struct Situation {
  reference::Call call;
  DiagnoseOptions options;

  Situation(std::size_t n, std::size_t m, std::size_t d_k, std::size_t d_v, std::size_t batch = 2,
            std::size_t heads = 4, std::size_t kv_heads = 2) {
    call.batch = batch;
    call.heads = heads;
    call.kv_heads = kv_heads;
    call.n = n;
    call.m = m;
    call.d_k = d_k;
    call.d_v = d_v;
    call.q = entries(batch * heads * n * d_k, .1);
    call.k = entries(batch * kv_heads * m * d_k, .7);
    call.v = entries(batch * kv_heads * m * d_v, 2.9);
    call.scale = 1 / std::sqrt(static_cast<double>(d_k));
    give();
  }
  Shape output() const {
    return {size(call.batch), size(call.heads), size(call.n), size(call.d_v)};
  }
  void give() {
    const Index b = size(call.batch), kv = size(call.kv_heads), m = size(call.m);
    options.query_key.q = source({b, size(call.heads), size(call.n), size(call.d_k)}, call.q);
    options.query_key.k = source({b, kv, m, size(call.d_k)}, call.k);
    options.value.v = source({b, kv, m, size(call.d_v)}, call.v);
  }
};

// The inputs of `s` with their first `past` keys given as the past.
inline void give_past(Situation& s, std::size_t past) {
  const auto part = [&](const Numbers& values, std::size_t d, std::size_t from, std::size_t to) {
    Numbers kept;
    for (std::size_t head = 0; head < s.call.batch * s.call.kv_heads; ++head) {
      const auto start = values.begin() + static_cast<std::ptrdiff_t>(head * s.call.m * d);
      kept.insert(kept.end(), start + static_cast<std::ptrdiff_t>(from * d),
                  start + static_cast<std::ptrdiff_t>(to * d));
    }
    return source({size(s.call.batch), size(s.call.kv_heads), size(to - from), size(d)}, kept);
  };
  s.options.value.past.k = part(s.call.k, s.call.d_k, 0, past);
  s.options.value.past.v = part(s.call.v, s.call.d_v, 0, past);
  s.options.query_key.k = part(s.call.k, s.call.d_k, past, s.call.m);
  s.options.value.v = part(s.call.v, s.call.d_v, past, s.call.m);
}

// [batch, rows, columns, d] with the middle axes swapped.
inline Numbers swapped(const Numbers& values, std::size_t batch, std::size_t rows,
                       std::size_t columns, std::size_t d) {
  Numbers result(values.size());
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t x = 0; x < d; ++x) {
          result[((b * columns + c) * rows + r) * d + x] =
              values[((b * rows + r) * columns + c) * d + x];
        }
      }
    }
  }
  return result;
}

// The output of weights [batch, heads, n, m], whatever they are.
inline Numbers mix(const reference::Call& c, const Numbers& weights) {
  Numbers output;
  for (std::size_t row = 0; row < c.batch * c.heads * c.n; ++row) {
    const std::size_t b = row / c.n / c.heads, h = row / c.n % c.heads;
    const std::size_t kv = b * c.kv_heads + h * c.kv_heads / c.heads;
    for (std::size_t y = 0; y < c.d_v; ++y) {
      double sum = 0;
      for (std::size_t j = 0; j < c.m; ++j) {
        sum += weights[row * c.m + j] * c.v[(kv * c.m + j) * c.d_v + y];
      }
      output.push_back(sum);
    }
  }
  return output;
}

// Weights of scores [batch, heads, n, m] where those of `group(b, h, i, j)` sum to 1.
using SumsTo = std::function<std::size_t(std::size_t, std::size_t, std::size_t, std::size_t)>;
inline Numbers softmax_over(const reference::Call& c, const Numbers& scores, const SumsTo& group) {
  Numbers weights(scores.size()), sums(scores.size(), 0.0);
  std::vector<std::size_t> groups;
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const std::size_t row = at / c.m;
    groups.push_back(group(row / c.n / c.heads, row / c.n % c.heads, row % c.n, at % c.m));
    weights[at] = std::exp(scores[at]);
    sums[groups.back()] += weights[at];
  }
  for (std::size_t at = 0; at < scores.size(); ++at) {
    if (weights[at] != 0) weights[at] /= sums[groups[at]];
  }
  return weights;
}

// The softmax over the keys of scores that `change` has changed, given whether they are seen.
using Change = std::function<double(double score, bool seen)>;
inline Numbers attend_changed(const reference::Call& c, const Numbers& scores,
                              const Change& change) {
  Numbers changed;
  for (std::size_t at = 0; at < scores.size(); ++at) {
    const std::size_t row = at / c.m;
    changed.push_back(
        change(scores[at], c.sees(row / c.n / c.heads, row / c.n % c.heads, row % c.n, at % c.m)));
  }
  for (std::size_t row = 0; row < changed.size() / c.m; ++row) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < c.m; ++j) largest = std::max(largest, changed[row * c.m + j]);
    for (std::size_t j = 0; j < c.m; ++j) changed[row * c.m + j] -= largest;
  }
  return mix(c, softmax_over(c, changed, [&](auto b, auto h, auto i, auto) {
               return (b * c.heads + h) * c.n + i;
             }));
}

// One head after the other with every sum rounded to E.
template <class E>
Numbers attend_in(const reference::Call& c) {
  const auto round = [](double x) {
    return static_cast<double>(static_cast<float>(E(static_cast<float>(x))));
  };
  Numbers output;
  for (std::size_t row = 0; row < c.batch * c.heads * c.n; ++row) {
    const std::size_t b = row / c.n / c.heads, h = row / c.n % c.heads;
    const std::size_t kv = b * c.kv_heads + h * c.kv_heads / c.heads;
    Numbers weights;
    double sum = 0;
    for (std::size_t j = 0; j < c.m; ++j) {
      double dot = 0;
      for (std::size_t x = c.d_k; x-- > 0;) {
        dot = round(dot + c.q[row * c.d_k + x] * c.k[(kv * c.m + j) * c.d_k + x]);
      }
      weights.push_back(c.sees(b, h, row % c.n, j) ? std::exp(c.scale * dot) : 0);
      sum += weights.back();
    }
    for (std::size_t y = 0; y < c.d_v; ++y) {
      double mixed = 0;
      for (std::size_t j = c.m; j-- > 0;) {
        mixed = round(mixed + weights[j] / sum * c.v[(kv * c.m + j) * c.d_v + y]);
      }
      output.push_back(mixed);
    }
  }
  return output;
}

}  // namespace attnlab
