#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "attnlab/attention/multi_head.h"
#include "attnlab/attention/scaled_dot_product_backward.h"
#include "attnlab/experiments/score_options.h"

namespace attnlab {

// attention: scaled_dot_product; backward: scaled_dot_product_backward, all three gradients;
// multihead: multi_head as self-attention of width heads d_k; normals: fill_normal of [heads, n,
// d_k] values, each head a trial.
enum class BenchOperation { attention, backward, multihead, normals };
template <>
inline constexpr std::array<std::string_view, 4> kChoiceNames<BenchOperation> = {
    "attention", "backward", "multihead", "normals"};

// Where a call puts its result. fresh: into memory that it allocates and that is given back after
// it; warm: into that of the call before.
enum class BenchBuffers { fresh, warm };
template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<BenchBuffers> = {"fresh", "warm"};

// One call to be measured: float32, one batch entry, as many keys as queries, d_v = d_k.
struct BenchCase {
  BenchOperation operation = BenchOperation::attention;
  Index n = 0, d_k = 0, heads = 1;
  bool causal = false;
  bool weights = false;  // whether the [heads, n, n] weights are part of the result
  Kernel kernel = Kernel::automatic;
  BenchBuffers buffers = BenchBuffers::fresh;
  Index threads = 1;

  friend bool operator==(const BenchCase&, const BenchCase&) = default;
};

// Floating-point operations of the matrix products, a multiply-add being two: 4 heads n^2 d_k for
// Q K^T and weights V, where causal the share (n + 1) / 2n of it that is seen; 5/2 of that for the
// five products of the backward pass (the scores again, and two for each of the two forward ones);
// with projections 8 n (heads d_k)^2 on top. Nothing for normals, which has no products.
std::optional<double> bench_flops(const BenchCase& of);

// Bytes of the tensors that the call reads, writes and passes on; the greatest number there is
// where they are more.
std::uint64_t bench_bytes(const BenchCase& of);

// The result of a call: of attention, backward, multihead or normals.
using BenchOutcome = std::variant<AttentionResult<float>, AttentionGradients<float>,
                                  MultiHeadResult<float>, Tensor<float>>;

// The inputs of a call, standard normals from the seed, and the call.
class BenchCall {
 public:
  BenchCall(const BenchCase& of, std::uint64_t seed);

  // Makes the library's call on so many threads, into `outcome`: an empty one, or that of an
  // earlier call, whose memory it takes over.
  void operator()(Index threads, BenchOutcome& outcome) const;

 private:
  void draw_normals(Index threads, Tensor<float>& values) const;

  BenchCase case_;
  std::uint64_t seed_;
  Mask mask_;
  AttentionSettings settings_;
  Request want_;
  Tensor<float> q_, k_, v_, grad_output_;  // of attention and backward
  Tensor<float> x_;                        // of multihead
  std::optional<MultiHeadParams<float>> layer_;
};

}  // namespace attnlab
