#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attnlab/attention/multi_head.h"
#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/core/random.h"

namespace attnlab {
namespace {

void require_sizes(const MultiHeadShape& shape) {
  const auto at_least_1 = [](std::string_view name, Index size) {
    if (size < 1) throw InputError("", name, std::to_string(size), "need at least 1");
  };
  at_least_1("d_query", shape.d_query);
  at_least_1("d_key", shape.d_key);
  at_least_1("d_value", shape.d_value);
  at_least_1("d_output", shape.d_output);
  at_least_1("heads", shape.heads);
  at_least_1("kv_heads", shape.kv_heads);
  at_least_1("d_k", shape.d_k);
  at_least_1("d_v", shape.d_v);
  if (shape.heads % shape.kv_heads != 0) {
    throw InputError("", "heads", std::to_string(shape.heads),
                     "need a multiple of the " + std::to_string(shape.kv_heads) + " kv_heads");
  }
}

// Before any product of sizes is taken, which might overflow.
void require_parameter_memory(const MultiHeadShape& shape, std::size_t element) {
  std::uint64_t total = 0;
  const auto add = [&](Index width, Index heads, Index d) {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const auto size = [](Index length) { return static_cast<std::uint64_t>(length); };
    const std::uint64_t counts[] = {size(width), size(heads), size(d)};
    // The numbers are drawn in float64 before they are rounded.
    const std::uint64_t bytes = checked_bytes(counts, element + sizeof(double)).value_or(most);
    total = bytes > most - total ? most : total + bytes;
  };
  add(shape.d_query, shape.heads, shape.d_k);
  add(shape.d_key, shape.kv_heads, shape.d_k);
  add(shape.d_value, shape.kv_heads, shape.d_v);
  add(shape.d_output, shape.heads, shape.d_v);
  require_memory(total, "parameters");
}

// W [fan_in, fan_out], each number drawn apart from T and then rounded to it.
template <class T>
Tensor<T> draw_matrix(Index fan_in, Index fan_out, Init init, double std, std::uint64_t seed,
                      Stream stream, std::uint64_t layer) {
  Tensor<T> w = Tensor<T>::uninitialized({fan_in, fan_out});
  const auto count = static_cast<std::size_t>(w.size());
  if (init == Init::normal) {
    std::vector<float> normals(count);
    fill_normal(normals, seed, stream, layer);
    for (std::size_t i = 0; i < count; ++i) {
      w.data()[i] = static_cast<T>(std * static_cast<double>(normals[i]));
    }
  } else {
    std::vector<double> uniforms(count);
    fill_uniform(uniforms, seed, stream, layer);
    const double a = std::sqrt(6 / (static_cast<double>(fan_in) + static_cast<double>(fan_out)));
    for (std::size_t i = 0; i < count; ++i) {
      w.data()[i] = static_cast<T>(a * (2 * uniforms[i] - 1));
    }
  }
  return w;
}

}  // namespace

template <class T>
MultiHeadParams<T> draw_multi_head(const MultiHeadShape& shape, Init init, double std,
                                   std::uint64_t seed, std::uint64_t layer) {
  require_sizes(shape);
  if (init == Init::normal && !(std >= 0 && std <= 1e30)) {
    throw InputError("", "std", fmt::format("{}", std), "need a number from 0 to 1e30");
  }
  require_parameter_memory(shape, sizeof(T));
  const Index q_width = shape.heads * shape.d_k;
  const Index k_width = shape.kv_heads * shape.d_k;
  const Index v_width = shape.kv_heads * shape.d_v;
  const auto draw = [&](Index fan_in, Index fan_out, Stream stream) {
    return draw_matrix<T>(fan_in, fan_out, init, std, seed, stream, layer);
  };

  MultiHeadParams<T> params;
  params.heads = shape.heads;
  params.kv_heads = shape.kv_heads;
  params.w_q = draw(shape.d_query, q_width, Stream::weight_q);
  params.w_k = draw(shape.d_key, k_width, Stream::weight_k);
  params.w_v = draw(shape.d_value, v_width, Stream::weight_v);
  params.w_o = draw(shape.heads * shape.d_v, shape.d_output, Stream::weight_o);
  if (shape.bias) {
    params.b_q = Tensor<T>({q_width});
    params.b_k = Tensor<T>({k_width});
    params.b_v = Tensor<T>({v_width});
    params.b_o = Tensor<T>({shape.d_output});
  }
  if (shape.qk_norm) {
    params.q_norm = Tensor<T>({shape.d_k}, T(1));
    params.k_norm = params.q_norm;
  }
  return params;
}

template MultiHeadParams<float> draw_multi_head(const MultiHeadShape&, Init, double, std::uint64_t,
                                                std::uint64_t);
template MultiHeadParams<double> draw_multi_head(const MultiHeadShape&, Init, double, std::uint64_t,
                                                 std::uint64_t);

}  // namespace attnlab
