// The tiled kernels are as exact as the plain path, forward and backward: both held against float64
// over awkward shapes, under every kind of mask and score.
//
// The error of a shape is the root mean square over all elements of one of its matrices, over as
// many heads and draws as tell one kernel from the other: the errors of a row, of a key and of a
// column of V hang together, and of a few the plain path may be right by luck.

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "attention/accuracy.h"
#include "attnlab/attention/kernel/tiled.h"
#include "attnlab/attention/scaled_dot_product_backward.h"
#include "attnlab/core/random.h"
#include "share.h"

namespace attnlab {
namespace {

// What the tiled kernel's error may be of the plain path's. A shape that comes near is drawn again
// before that is said.
constexpr double kBound = 1.5;
// Where the plain path's products are Eigen's of a matrix and a vector, or end in rows fewer than
// its registers hold: those add up in four sums at once, and are more exact than the one sum of the
// tiles. Of a query alone that holds for all keys and for V: here it comes to 2.1 times, with 257
// keys and d_k 513 it would to 2.7. (One that is a step of decoding has the bits of its row in the
// whole sequence, and so no sums of its own.) Of two or three keys it comes to 1.75 times.
constexpr double kBoundOfOneQuery = 2.25, kBoundOfFewKeys = 1.8;
// Of the other shapes, the root mean square of the ratios, as measured with AVX2. Where multiply
// and add are not fused (SSE), each product is rounded too, as the plain path's are, and scores
// once more as they become powers of two; AVX-512 and NEON have not been measured.
constexpr double kBoundOfAll = 1, kBoundOfAllGradients = 1.01, kBoundOfAllElsewhere = 1.05;
constexpr double kNear = 0.85;
constexpr int kDraws = 12;
// Queries, keys and columns of V that a draw has at least, heads together.
constexpr Index kApart = 96;
// Multiply-adds that the forward pass of a drawn shape may take.
constexpr double kWork = 3e6;

constexpr std::array<Index, 22> kLengths = {1,  2,  3,  5,   8,   16,  17,  31,  33,  63,  64,
                                            65, 96, 97, 127, 128, 129, 200, 255, 256, 257, 513};

enum class Kind { plain, causal, offset, window, lengths, boolean, additive, softcap, alibi };
constexpr std::array<const char*, 9> kKindNames = {
    "no mask", "causal",    "causal with an offset", "a window", "key lengths", "a bool mask",
    "a bias",  "a softcap", "linear biases",
};

struct AwkwardShape {
  Index n, m, d_k, d_v;
  Index heads = 1, kv_heads = 1;

  double bound() const {
    if (n == 1) return kBoundOfOneQuery;
    return m == 2 || m == 3 ? kBoundOfFewKeys : kBound;
  }
  double work() const {
    return static_cast<double>(heads * n) * static_cast<double>(m * (d_k + d_v));
  }
};

AwkwardShape with_heads(AwkwardShape s) {
  const auto heads_for = [](Index length) { return (kApart + length - 1) / length; };
  s.kv_heads = heads_for(std::min(s.m, s.d_v));
  s.heads = (heads_for(s.n) + s.kv_heads - 1) / s.kv_heads * s.kv_heads;
  return s;
}

// Lengths at random on each axis, and shapes that they would rarely give.
std::vector<AwkwardShape> awkward_shapes() {
  std::vector<AwkwardShape> shapes = {{513, 257, 64, 64},   {257, 513, 128, 127},
                                      {129, 128, 256, 255}, {65, 513, 63, 200},
                                      {200, 1, 257, 129},   {63, 65, 513, 8}};
  test::Numbers numbers(9);
  const auto any = [&] {
    return kLengths[static_cast<std::size_t>((numbers.next() + 1) / 2 * kLengths.size())];
  };
  while (shapes.size() < 96) {
    const Index n = any(), m = any(), d_k = any(), d_v = any();
    const AwkwardShape shape = with_heads({n, m, d_k, d_v});
    if (shape.work() <= kWork) shapes.push_back(shape);
  }
  return shapes;
}

Tensor<float> normals(const Shape& shape, std::uint64_t seed, Stream stream) {
  Tensor<float> tensor = Tensor<float>::uninitialized(shape);
  fill_normal(tensor.values(), seed, stream);
  return tensor;
}

Mask mask_of(const AwkwardShape& s, Kind kind, std::uint64_t seed) {
  Mask mask(1, s.heads, s.n, s.m);
  switch (kind) {
    case Kind::plain:
    case Kind::softcap:
      break;
    case Kind::offset:
      mask.set_offset(s.m - s.n + 1);
      mask.set_causal();
      break;
    case Kind::causal:
      mask.set_causal();
      break;
    case Kind::window:
      mask.set_offset(s.m / 2 - s.n / 2);
      mask.set_window(40, 7);
      break;
    case Kind::lengths:
      mask.set_key_lengths({s.m - s.m / 3});
      break;
    case Kind::boolean: {
      test::Numbers numbers(seed);
      Tensor<bool> seen({1, 1, s.n, s.m});
      for (bool& value : seen.values()) value = numbers.next() < 0.4;
      mask.set_boolean(std::move(seen));
      break;
    }
    case Kind::additive:
      mask.set_additive(normals({1, 1, s.n, s.m}, seed, Stream::input_x));
      break;
    case Kind::alibi: {
      std::vector<double> slopes;
      for (Index h = 0; h < s.heads; ++h)
        slopes.push_back(std::ldexp(1, -1 - static_cast<int>(h % 8)));
      mask.set_offset(s.m - s.n);
      mask.set_alibi(slopes);
      break;
    }
  }
  return mask;
}

template <class T>
struct Inputs {
  Tensor<T> q, k, v, grad_output;
};

Inputs<float> draw(const AwkwardShape& s, std::uint64_t seed) {
  return {normals({1, s.heads, s.n, s.d_k}, seed, Stream::input_q),
          normals({1, s.kv_heads, s.m, s.d_k}, seed, Stream::input_k),
          normals({1, s.kv_heads, s.m, s.d_v}, seed, Stream::input_v),
          normals({1, s.heads, s.n, s.d_v}, seed, Stream::sample_grad_output)};
}

Inputs<double> in_float64(const Inputs<float>& inputs) {
  const auto cast = [](const Tensor<float>& t) { return AnyTensor(t).cast<double>(); };
  return {cast(inputs.q), cast(inputs.k), cast(inputs.v), cast(inputs.grad_output)};
}

constexpr std::array<const char*, 5> kMatrixNames = {"output", "weights", "grad_q", "grad_k",
                                                     "grad_v"};

template <class T>
std::array<Tensor<T>, 5> matrices(const Inputs<T>& in, const Mask& mask, AttentionSettings settings,
                                  Kernel kernel) {
  settings.kernel = kernel;
  auto forward = scaled_dot_product(in.q, in.k, in.v, mask, settings, {"weights"});
  auto backward = scaled_dot_product_backward(in.q, in.k, in.v, in.grad_output, mask, settings);
  return {std::move(forward.output), *std::move(forward.weights), *std::move(backward.grad_q),
          *std::move(backward.grad_k), *std::move(backward.grad_v)};
}

// Squares of what the kernels are off, over draws.
struct Squares {
  double tiled = 0, plain = 0;

  bool within(double bound) const { return tiled <= bound * bound * plain; }
};

std::array<Squares, 5> errors_of(const AwkwardShape& shape, Kind kind) {
  AttentionSettings settings{.scale = 1 / std::sqrt(static_cast<double>(shape.d_k)), .threads = 1};
  if (kind == Kind::softcap) settings.softcap = 1.5;
  std::array<Squares, 5> errors;
  const auto near = [&](const Squares& s) { return !s.within(kNear * shape.bound()); };
  int draws = 0;
  do {
    const auto seed = static_cast<std::uint64_t>(++draws);
    const Mask mask = mask_of(shape, kind, seed);
    const Inputs<float> inputs = draw(shape, seed);
    const auto truth = matrices(in_float64(inputs), mask, settings, Kernel::full);
    const auto tiled = matrices(inputs, mask, settings, Kernel::tiled);
    const auto plain = matrices(inputs, mask, settings, Kernel::full);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i].tiled += test::squares_off(tiled[i], truth[i]);
      errors[i].plain += test::squares_off(plain[i], truth[i]);
    }
  } while (draws < kDraws && std::any_of(errors.begin(), errors.end(), near));
  return errors;
}

// Ratios of a matrix's squares over shapes.
struct Ratios {
  double sum = 0;
  int count = 0;

  void add(const Squares& s) {
    if (s.plain == 0) return;  // a key alone has weight 1
    sum += s.tiled / s.plain;
    ++count;
  }
  double root_mean() const { return std::sqrt(sum / count); }
};

TEST_CASE("errors are at most so many times the plain path's, of each shape and over all") {
  const std::vector<AwkwardShape> shapes = awkward_shapes();
  std::array<Ratios, 5> all;
  for (std::size_t i = 0; i < shapes.size(); i += test::kCombinationStep) {
    // Two kinds a shape, each kind with shapes of every sort.
    for (const std::size_t kind : {i % kKindNames.size(), (i / 2 + 4) % kKindNames.size()}) {
      const AwkwardShape& s = shapes[i];
      const auto errors = errors_of(s, static_cast<Kind>(kind));
      for (std::size_t x = 0; x < errors.size(); ++x) {
        INFO(s.n << " queries, " << s.m << " keys, d_k " << s.d_k << ", d_v " << s.d_v << ", "
                 << kKindNames[kind] << ", " << kMatrixNames[x] << ": "
                 << std::sqrt(errors[x].tiled / errors[x].plain));
        CHECK(errors[x].within(s.bound()));
        if (s.bound() == kBound) all[x].add(errors[x]);
      }
    }
  }
  if (test::kCombinationStep > 1) return;  // few shapes may be as luck has it
  const bool is_measured = std::string_view(tiled_target()) == "AVX2";
  for (std::size_t x = 0; x < all.size(); ++x) {
    const bool is_gradient = x >= 2;
    INFO(kMatrixNames[x]);
    CHECK(all[x].root_mean() <= (!is_measured  ? kBoundOfAllElsewhere
                                 : is_gradient ? kBoundOfAllGradients
                                               : kBoundOfAll));
  }
}

}  // namespace
}  // namespace attnlab
