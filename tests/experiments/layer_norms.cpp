// Layers that normalise their queries and keys, as Qwen3 does.

#include <cmath>

#include "attnlab/experiments/attend.h"
#include "attnlab/experiments/gradcheck.h"
#include "attnlab/experiments/multihead.h"
#include "attnlab/io/safetensors.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Tensors = std::vector<NamedTensor>;

Tensor<double> some(const Shape& shape, double phase) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) {
    tensor[i] = std::sin(1 + 7 * static_cast<double>(i) + phase);
  }
  return tensor;
}

Tensor<double> transposed(const Tensor<double>& w) {
  Tensor<double> t({w.shape()[1], w.shape()[0]});
  t.matrix() = w.matrix().transpose();
  return t;
}

const Tensor<double> kQNorm({4}, {1, -.5, 2, .3}), kKNorm({4}, {.7, 1.2, -1, .4});

// Two heads of width 4, one of keys.
Tensors qwen() {
  const std::string self = "model.layers.7.self_attn.";
  return {{self + "q_proj.weight", transposed(some({6, 8}, .1))},
          {self + "k_proj.weight", transposed(some({6, 4}, .2))},
          {self + "v_proj.weight", transposed(some({6, 4}, .3))},
          {self + "o_proj.weight", transposed(some({8, 6}, .4))},
          {self + "q_norm.weight", kQNorm},
          {self + "k_norm.weight", kKNorm}};
}
Tensors plain() {
  return {{"w_q", some({6, 8}, .1)}, {"w_k", some({6, 4}, .2)}, {"w_v", some({6, 4}, .3)},
          {"w_o", some({8, 6}, .4)}, {"q_norm", kQNorm},        {"k_norm", kKNorm}};
}

MultiheadOptions layer_of(const Tensors& tensors, const TemporaryFolder& folder) {
  MultiheadOptions options;
  options.layer.params.path = folder / "layer.safetensors";
  write_safetensors(options.layer.params.path, tensors, "params");
  options.inputs.x.values = AnyTensor(some({3, 6}, 5));
  options.sizes.heads = 2;
  return options;
}

// Rows over their root mean square, times the weights, in plain loops.
std::vector<double> normed(const std::vector<double>& x, const Tensor<double>& weight, double eps) {
  std::vector<double> result;
  for (std::size_t at = 0; at < x.size(); at += 4) {
    double mean = 0;
    for (std::size_t c = 0; c < 4; ++c) mean += x[at + c] * x[at + c] / 4;
    for (std::size_t c = 0; c < 4; ++c) {
      result.push_back(x[at + c] / std::sqrt(mean + eps) * weight[static_cast<Index>(c)]);
    }
  }
  return result;
}

void check_close(const std::optional<AnyTensor>& tensor, const std::vector<double>& expected) {
  const std::vector<double> got = values_of(tensor);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(1e-14));
}

const Request kSteps = {"q",        "k",         "v",         "q_norm",  "k_norm", "normed_q",
                        "normed_k", "rotated_q", "rotated_k", "weights", "heads",  "present_k"};

TEST_CASE("queries and keys are normed head by head, then rotated, and then they meet") {
  const TemporaryFolder folder;
  MultiheadOptions options = layer_of(qwen(), folder);
  options.positions.rope_theta = 1e6;
  options.role = Role::decoder;
  for (const std::optional<double> eps : {std::optional<double>(), {.25}}) {
    options.layer.qk_norm_eps = eps;
    const MultiheadResult layer = multihead(options, kSteps);
    check_close(layer.normed_q, normed(values_of(layer.q), kQNorm, eps.value_or(1e-6)));
    check_close(layer.normed_k, normed(values_of(layer.k), kKNorm, eps.value_or(1e-6)));
    CHECK(values_of(layer.q_norm) == values_of(AnyTensor(kQNorm)));
    AttendOptions attending;
    attending.query_key.q.values = layer.normed_q;
    attending.query_key.k.values = layer.normed_k;
    attending.value.v.values = layer.v;
    attending.positions = options.positions;
    attending.mask.causal = true;
    const AttendResult expected = attend(attending, kSteps);
    CHECK(values_of(layer.rotated_q) == values_of(expected.rotated_q));
    CHECK(values_of(layer.present_k) == values_of(expected.rotated_k));
    CHECK(values_of(layer.attention.weights) == values_of(expected.attention.weights));
    CHECK(values_of(layer.heads) == values_of(expected.output));
  }
}

TEST_CASE("norms are read in the layouts that have them, and saved with the layer") {
  const TemporaryFolder folder;
  MultiheadOptions options = layer_of(qwen(), folder);
  const std::vector<double> output = values_of(multihead(options, {}).output);
  options = layer_of(plain(), folder);
  options.layer.save_params.path = folder / "saved.safetensors";
  const MultiheadResult own = multihead(options, {});
  CHECK(values_of(own.output) == output);
  Tensors unlike = plain();
  unlike.erase(unlike.begin() + 4, unlike.end());
  CHECK(values_of(multihead(layer_of(unlike, folder), {}).output) != output);

  write_layer(folder / "saved.safetensors", *own.layer, "save_params");
  options.layer = {};
  options.layer.params.path = folder / "saved.safetensors";
  CHECK(values_of(multihead(options, {}).output) == output);
}

TEST_CASE("a layer may norm its queries alone") {
  const TemporaryFolder folder;
  Tensors tensors = plain();
  tensors.pop_back();
  const MultiheadResult layer = multihead(layer_of(tensors, folder), kSteps);
  check_close(layer.normed_q, normed(values_of(layer.q), kQNorm, 1e-6));
  CHECK(values_of(layer.normed_k) == values_of(layer.k));
  CHECK_FALSE(layer.k_norm.has_value());
}

TEST_CASE("a layer is drawn with norms that only divide") {
  MultiheadOptions options;
  options.layer.qk_norm = true;
  options.sizes.dtype = Precision::float64;
  const MultiheadResult layer = multihead(options, kSteps);
  check_close(layer.normed_q, normed(values_of(layer.q), Tensor<double>({4}, 1), 1e-6));
  CHECK(values_of(layer.q_norm) == std::vector<double>(4, 1));
}

TEST_CASE("gradients of norms, and of what stands before them, are those of differences") {
  const TemporaryFolder folder;
  const MultiheadOptions layer = layer_of(qwen(), folder);
  GradcheckOptions options;
  options.layer = layer.layer;
  options.inputs = layer.inputs;
  options.sizes.heads = 2;
  options.mask.causal = true;
  for (const bool rotates : {false, true}) {
    if (rotates) options.positions.rope_theta = 30;
    const GradcheckResult result = gradcheck(options, {});
    CHECK(result.passed);
    std::string names;
    for (const GradientCheck& row : result.rows) {
      names += row.tensor + ' ';
      CHECK(*row.relative_error < 1e-8);
      CHECK(row.norm > .01);
    }
    CHECK(names == "x w_q w_k w_v w_o q_norm k_norm ");
  }
}

TEST_CASE("gradients of norms come with --grad-output, those of a layer without norms do not") {
  const TemporaryFolder folder;
  MultiheadOptions options = layer_of(qwen(), folder);
  options.gradients.grad_output.values = AnyTensor(some({3, 6}, 9));
  const Request want = {"grad_q_norm", "grad_k_norm"};
  const MultiheadResult layer = multihead(options, want);
  CHECK(layer.gradients.grad_q_norm->shape() == Shape{4});
  CHECK(layer.gradients.grad_k_norm->shape() == Shape{4});
  Tensors unlike = plain();
  unlike.erase(unlike.begin() + 4, unlike.end());
  MultiheadOptions other = layer_of(unlike, folder);
  other.gradients = options.gradients;
  CHECK_FALSE(multihead(other, want).gradients.grad_q_norm.has_value());
}

TEST_CASE("norms that do not fit are refused, and options of norms that are not there") {
  const TemporaryFolder folder;
  Tensors tensors = qwen();
  tensors.back().tensor = AnyTensor(some({8}, 1));
  const auto refused = [](const MultiheadOptions& options) {
    return refusal([&] { multihead(options, {}); });
  };
  CHECK(refused(layer_of(tensors, folder)).find("k_norm: got [8], need [4]") != std::string::npos);
  MultiheadOptions options = layer_of(plain(), folder);
  options.layer.qk_norm = true;
  CHECK(refused(options).find("qk_norm: got true, is for drawing") != std::string::npos);
  options = {};
  options.layer.qk_norm_eps = 1e-5;
  CHECK(refused(options).find("qk_norm_eps: got 1e-05") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
