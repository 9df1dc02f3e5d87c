#include "attnlab/experiments/bench_case.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "attnlab/attention/earlier_result.h"
#include "attnlab/core/random.h"
#include "attnlab/core/threads.h"

namespace attnlab {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

// Bytes of float32 of these lengths.
std::uint64_t bytes_of(std::initializer_list<Index> lengths) {
  const std::vector<std::uint64_t> counts(lengths.begin(), lengths.end());
  return checked_bytes(counts, sizeof(float)).value_or(kMost);
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }

Tensor<float> drawn(const Shape& shape, std::uint64_t seed, Stream stream) {
  Tensor<float> tensor = Tensor<float>::uninitialized(shape);
  fill_normal(tensor.values(), seed, stream);
  return tensor;
}

MultiHeadShape layer_of(const BenchCase& of) {
  const Index d_model = of.heads * of.d_k;
  return {.d_query = d_model,
          .d_key = d_model,
          .d_value = d_model,
          .d_output = d_model,
          .heads = of.heads,
          .kv_heads = of.heads,
          .d_k = of.d_k,
          .d_v = of.d_k};
}

// The result of that type, an empty one where there is another.
template <class Result>
Result& result_in(BenchOutcome& outcome) {
  if (auto* result = std::get_if<Result>(&outcome)) return *result;
  return outcome.emplace<Result>();
}

}  // namespace

std::optional<double> bench_flops(const BenchCase& of) {
  const auto n = static_cast<double>(of.n);
  const auto d_model = static_cast<double>(of.heads) * static_cast<double>(of.d_k);
  double flops = 4 * n * n * d_model;
  if (of.causal) flops *= (n + 1) / (2 * n);
  switch (of.operation) {
    case BenchOperation::attention:
      break;
    case BenchOperation::backward:
      return 2.5 * flops;
    case BenchOperation::multihead:
      return flops + 8 * n * d_model * d_model;
    case BenchOperation::normals:
      return std::nullopt;
  }
  return flops;
}

std::uint64_t bench_bytes(const BenchCase& of) {
  // Tensors of heads n d_k numbers: q, k, v, output; with gradients grad_output and three more;
  // of a layer also x, the heads side by side, the output of the layer and what a projection gives
  // before it is split. The values of normals are one such tensor.
  Index tensors = of.operation == BenchOperation::attention ? 4 : 8;
  if (of.operation == BenchOperation::normals) tensors = 1;
  std::uint64_t bytes = bytes_of({tensors, of.heads, of.n, of.d_k});
  if (of.operation == BenchOperation::multihead) {
    bytes = sum(bytes, bytes_of({4, of.heads, of.d_k, of.heads, of.d_k}));
  }
  if (of.weights) bytes = sum(bytes, bytes_of({of.heads, of.n, of.n}));
  return bytes;
}

BenchCall::BenchCall(const BenchCase& of, std::uint64_t seed)
    : case_(of), seed_(seed), mask_(1, of.heads, of.n, of.n) {
  if (of.causal) mask_.set_causal();
  if (of.weights) want_.add("weights");
  settings_.scale = 1 / std::sqrt(static_cast<double>(of.d_k));
  settings_.kernel = of.kernel;
  if (of.operation == BenchOperation::normals) return;
  if (of.operation == BenchOperation::multihead) {
    x_ = drawn({1, of.n, of.heads * of.d_k}, seed, Stream::input_x);
    layer_ = draw_multi_head<float>(layer_of(of), Init::xavier_uniform, 1, seed);
    return;
  }
  const Shape shape{1, of.heads, of.n, of.d_k};
  q_ = drawn(shape, seed, Stream::input_q);
  k_ = drawn(shape, seed, Stream::input_k);
  v_ = drawn(shape, seed, Stream::input_v);
  if (of.operation == BenchOperation::backward) {
    grad_output_ = drawn(shape, seed, Stream::sample_grad_output);
  }
}

void BenchCall::operator()(Index threads, BenchOutcome& outcome) const {
  AttentionSettings settings = settings_;
  settings.threads = threads;
  switch (case_.operation) {
    case BenchOperation::attention:
      return scaled_dot_product(q_, k_, v_, mask_, settings, want_,
                                result_in<AttentionResult<float>>(outcome));
    case BenchOperation::backward:
      return scaled_dot_product_backward(q_, k_, v_, grad_output_, mask_, settings,
                                         {"grad_q", "grad_k", "grad_v"},
                                         result_in<AttentionGradients<float>>(outcome));
    case BenchOperation::multihead: {
      constexpr const Past<float>* kNoPast = nullptr;
      return multi_head(x_, x_, x_, *layer_, mask_, settings, want_, kNoPast,
                        result_in<MultiHeadResult<float>>(outcome));
    }
    case BenchOperation::normals:
      return draw_normals(threads, result_in<Tensor<float>>(outcome));
  }
}

void BenchCall::draw_normals(Index threads, Tensor<float>& values) const {
  const Shape shape{case_.heads, case_.n, case_.d_k};
  if (values.shape() != shape) values = Tensor<float>::uninitialized(shape);
  const auto length = static_cast<std::size_t>(case_.n * case_.d_k);
  parallel_for(threads, case_.heads, [&](Index head) {
    const auto of_head = values.values().subspan(static_cast<std::size_t>(head) * length, length);
    fill_normal(of_head, seed_, Stream::input_x, static_cast<std::uint64_t>(head));
  });
}

}  // namespace attnlab
