#include <algorithm>

#include "attention/attention_test.h"
#include "attnlab/core/random.h"

namespace attnlab {
namespace {

using test::error_of;
using test::same_bits;
using test::says;

constexpr MultiHeadShape kShape = {.d_query = 40,
                                   .d_key = 30,
                                   .d_value = 20,
                                   .d_output = 50,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .d_k = 8,
                                   .d_v = 5,
                                   .bias = true};

TEST_CASE("a drawn layer has the sizes asked for, and biases of 0") {
  const auto params = draw_multi_head<float>(kShape, Init::xavier_uniform, 0, 1);
  const MultiHeadShape shape = params.shape();
  CHECK(shape.d_query == 40);
  CHECK(shape.d_key == 30);
  CHECK(shape.d_value == 20);
  CHECK(shape.d_output == 50);
  CHECK(shape.kv_heads == 2);
  CHECK(shape.d_k == 8);
  CHECK(shape.d_v == 5);
  CHECK(shape.bias);
  for (const auto& bias : {params.b_q, params.b_k, params.b_v, params.b_o}) {
    for (const float value : bias->values()) CHECK(value == 0);
  }
  MultiHeadShape plain = kShape;
  plain.bias = false;
  CHECK_FALSE(draw_multi_head<float>(plain, Init::normal, 1, 1).b_q);
}

TEST_CASE("Xavier's bound is that of each whole matrix") {
  const auto params = draw_multi_head<double>(kShape, Init::xavier_uniform, 0, 3);
  for (const Tensor<double>* w : {&params.w_q, &params.w_k, &params.w_v, &params.w_o}) {
    const double a = std::sqrt(6.0 / static_cast<double>(w->shape()[0] + w->shape()[1]));
    const auto magnitude = [](double x, double y) { return std::abs(x) < std::abs(y); };
    const double largest =
        std::abs(*std::max_element(w->values().begin(), w->values().end(), magnitude));
    CHECK(largest < a);
    // Of 200 uniforms and more, the largest is below .9 with probability 7e-10.
    CHECK(largest > .9 * a);
  }
}

TEST_CASE("drawn weights are those of their stream, trial and element") {
  const auto xavier = draw_multi_head<double>(kShape, Init::xavier_uniform, 0, 3, 7);
  std::vector<double> uniforms(40 * 32);
  fill_uniform(uniforms, 3, Stream::weight_q, 7);
  CHECK(xavier.w_q[1000] == std::sqrt(6.0 / 72) * (2 * uniforms[1000] - 1));
  const auto normal = draw_multi_head<double>(kShape, Init::normal, .02, 3, 7);
  std::vector<float> normals(20 * 50);
  fill_normal(normals, 3, Stream::weight_o, 7);
  CHECK(normal.w_o[999] == .02 * static_cast<double>(normals[999]));
  fill_normal(std::span(normals).first(30 * 16), 3, Stream::weight_k, 7);
  CHECK(normal.w_k[479] == .02 * static_cast<double>(normals[479]));
  fill_normal(std::span(normals).first(20 * 10), 3, Stream::weight_v, 7);
  CHECK(normal.w_v[199] == .02 * static_cast<double>(normals[199]));
}

TEST_CASE("float32 weights are the float64 ones rounded") {
  for (const Init init : {Init::xavier_uniform, Init::normal}) {
    const auto narrow = draw_multi_head<float>(kShape, init, .3, 5);
    const auto wide = draw_multi_head<double>(kShape, init, .3, 5);
    CHECK(same_bits(narrow.w_q, AnyTensor(wide.w_q).cast<float>()));
    CHECK(same_bits(narrow.w_o, AnyTensor(wide.w_o).cast<float>()));
  }
}

TEST_CASE("seed, layer and matrix each give other weights") {
  MultiHeadShape square = {.d_query = 6,
                           .d_key = 6,
                           .d_value = 6,
                           .d_output = 6,
                           .heads = 1,
                           .kv_heads = 1,
                           .d_k = 6,
                           .d_v = 6};
  const auto a = draw_multi_head<float>(square, Init::normal, 1, 1, 0);
  CHECK(same_bits(a.w_q, draw_multi_head<float>(square, Init::normal, 1, 1, 0).w_q));
  CHECK_FALSE(same_bits(a.w_q, draw_multi_head<float>(square, Init::normal, 1, 2, 0).w_q));
  CHECK_FALSE(same_bits(a.w_q, draw_multi_head<float>(square, Init::normal, 1, 1, 1).w_q));
  CHECK_FALSE(same_bits(a.w_q, a.w_k));
  CHECK_FALSE(same_bits(a.w_k, a.w_v));
  CHECK_FALSE(same_bits(a.w_v, a.w_o));
}

TEST_CASE("sizes that make no layer are refused by name") {
  const auto error = [](Index MultiHeadShape::*size, Index value, double std = 1) {
    MultiHeadShape shape = kShape;
    shape.*size = value;
    return error_of([&] { draw_multi_head<float>(shape, Init::normal, std, 1); });
  };
  CHECK(error(&MultiHeadShape::heads, 4).empty());
  CHECK(says(error(&MultiHeadShape::d_query, 0), {"d_query: got 0"}));
  CHECK(says(error(&MultiHeadShape::d_key, -1), {"d_key: got -1"}));
  CHECK(says(error(&MultiHeadShape::d_value, 0), {"d_value: got 0"}));
  CHECK(says(error(&MultiHeadShape::d_output, 0), {"d_output: got 0"}));
  CHECK(says(error(&MultiHeadShape::d_k, 0), {"d_k: got 0"}));
  CHECK(says(error(&MultiHeadShape::d_v, 0), {"d_v: got 0"}));
  CHECK(says(error(&MultiHeadShape::kv_heads, 0), {"kv_heads: got 0"}));
  CHECK(says(error(&MultiHeadShape::heads, 3), {"heads: got 3", "2 kv_heads"}));
  const Index huge = std::numeric_limits<Index>::max() / 2;
  CHECK(says(error(&MultiHeadShape::d_query, huge), {"parameters: needs ", "EB of memory"}));
  CHECK(says(error(&MultiHeadShape::d_k, huge), {"parameters: needs ", "EB of memory"}));
  for (const double std : {-1.0, test::kNan, test::kInfinity}) {
    CHECK(says(error(&MultiHeadShape::heads, 4, std), {"std: got "}));
  }
}

}  // namespace
}  // namespace attnlab
