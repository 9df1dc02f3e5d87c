#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

// Attention as loops over plain arrays, written apart from the library and sharing nothing with
// it: what the library's results are held against. Arrays are row-major.
namespace reference {

struct Call {
  std::size_t batch = 1, heads = 1, kv_heads = 1, n = 1, m = 1, d_k = 1, d_v = 1;
  std::vector<double> q, k, v;
  double scale = 1;
  std::optional<double> softcap;
  std::function<bool(std::size_t b, std::size_t h, std::size_t i, std::size_t j)> sees =
      [](std::size_t, std::size_t, std::size_t, std::size_t) { return true; };
  std::function<double(std::size_t b, std::size_t h, std::size_t i, std::size_t j)> bias =
      [](std::size_t, std::size_t, std::size_t, std::size_t) { return 0.0; };
  // What dropout multiplies a weight with, in the gradients.
  std::function<double(std::size_t b, std::size_t h, std::size_t i, std::size_t j)> kept =
      [](std::size_t, std::size_t, std::size_t, std::size_t) { return 1.0; };
};

struct Result {
  std::vector<double> raw_scores, scores, capped_scores, masked_scores, weights, output;
  std::size_t empty_rows = 0;
};

inline Result attend(const Call& c) {
  Result r;
  const double infinity = std::numeric_limits<double>::infinity();
  for (std::size_t b = 0; b < c.batch; ++b) {
    for (std::size_t h = 0; h < c.heads; ++h) {
      const std::size_t kv = b * c.kv_heads + h * c.kv_heads / c.heads;
      for (std::size_t i = 0; i < c.n; ++i) {
        std::vector<double> exps(c.m, 0.0);
        double largest = -infinity;
        bool any = false;
        for (std::size_t j = 0; j < c.m; ++j) {
          double dot = 0;
          for (std::size_t x = 0; x < c.d_k; ++x) {
            dot += c.q[((b * c.heads + h) * c.n + i) * c.d_k + x] * c.k[(kv * c.m + j) * c.d_k + x];
          }
          const double scaled = dot * c.scale;
          const double capped = c.softcap ? *c.softcap * std::tanh(scaled / *c.softcap) : scaled;
          const bool seen = c.sees(b, h, i, j);
          const double masked = seen ? capped + c.bias(b, h, i, j) : -infinity;
          r.raw_scores.push_back(dot);
          r.scores.push_back(scaled);
          r.capped_scores.push_back(capped);
          r.masked_scores.push_back(masked);
          any = any || seen;
          if (seen && masked > largest) largest = masked;
        }
        if (!any) ++r.empty_rows;
        double sum = 0;
        for (std::size_t j = 0; j < c.m; ++j) {
          if (!c.sees(b, h, i, j)) continue;
          exps[j] = std::exp(r.masked_scores[r.masked_scores.size() - c.m + j] - largest);
          sum += exps[j];
        }
        for (std::size_t j = 0; j < c.m; ++j) {
          r.weights.push_back(c.sees(b, h, i, j) ? exps[j] / sum : 0.0);
        }
        for (std::size_t y = 0; y < c.d_v; ++y) {
          double mixed = 0;
          for (std::size_t j = 0; j < c.m; ++j) {
            if (!c.sees(b, h, i, j)) continue;
            mixed += r.weights[r.weights.size() - c.m + j] * c.v[(kv * c.m + j) * c.d_v + y];
          }
          r.output.push_back(mixed);
        }
      }
    }
  }
  return r;
}

struct Gradients {
  std::vector<double> grad_q, grad_k, grad_v;
};

// By the chain rule, one element at a time, with the whole Jacobian of the softmax.
inline Gradients differentiate(const Call& c, const std::vector<double>& grad_output) {
  const Result forward = attend(c);
  Gradients g;
  g.grad_q.assign(c.q.size(), 0.0);
  g.grad_k.assign(c.k.size(), 0.0);
  g.grad_v.assign(c.v.size(), 0.0);
  for (std::size_t b = 0; b < c.batch; ++b) {
    for (std::size_t h = 0; h < c.heads; ++h) {
      const std::size_t kv = b * c.kv_heads + h * c.kv_heads / c.heads;
      for (std::size_t i = 0; i < c.n; ++i) {
        const std::size_t query = (b * c.heads + h) * c.n + i;
        const double* p = forward.weights.data() + query * c.m;
        std::vector<double> grad_weights(c.m, 0.0);
        for (std::size_t j = 0; j < c.m; ++j) {
          for (std::size_t y = 0; y < c.d_v; ++y) {
            const double kept = c.kept(b, h, i, j), dy = grad_output[query * c.d_v + y];
            grad_weights[j] += kept * dy * c.v[(kv * c.m + j) * c.d_v + y];
            g.grad_v[(kv * c.m + j) * c.d_v + y] += kept * p[j] * dy;
          }
        }
        for (std::size_t j = 0; j < c.m; ++j) {
          double grad_score = 0;
          for (std::size_t l = 0; l < c.m; ++l) {
            grad_score += grad_weights[l] * p[l] * ((l == j ? 1.0 : 0.0) - p[j]);
          }
          if (c.softcap) {
            const double t = std::tanh(forward.scores[query * c.m + j] / *c.softcap);
            grad_score *= 1 - t * t;
          }
          for (std::size_t x = 0; x < c.d_k; ++x) {
            const std::size_t in_q = query * c.d_k + x, in_k = (kv * c.m + j) * c.d_k + x;
            g.grad_q[in_q] += c.scale * grad_score * c.k[in_k];
            g.grad_k[in_k] += c.scale * grad_score * c.q[in_q];
          }
        }
      }
    }
  }
  return g;
}

}  // namespace reference
