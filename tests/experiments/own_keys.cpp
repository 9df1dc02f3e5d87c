// Keys and values of a layer's own: bias_k and bias_v of its file, and --add-zero-attn.

#include <cmath>

#include "attnlab/experiments/gradcheck.h"
#include "attnlab/experiments/weights.h"
#include "attnlab/io/safetensors.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Tensors = std::vector<NamedTensor>;

Tensor<double> some(const Shape& shape, int which) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) {
    tensor[i] = std::sin(1 + static_cast<double>(i * 7 + which * 1000));
  }
  return tensor;
}

// A layer of two heads of width 2 in the attnlab layout, its own key and value of shape `own`.
Tensors layer_with(const Shape& own) {
  return {{"w_q", some({4, 4}, 1)}, {"w_k", some({4, 4}, 2)}, {"w_v", some({4, 4}, 3)},
          {"w_o", some({4, 4}, 4)}, {"bias_k", some(own, 5)}, {"bias_v", some(own, 6)}};
}

class OnDisk {
 public:
  explicit OnDisk(const Tensors& tensors) {
    options.layer.params.path = folder_ / "layer.safetensors";
    write_safetensors(options.layer.params.path, tensors, "params");
    options.sizes.heads = 2;
    options.inputs.x.values = some({3, 4}, 9);
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  MultiheadResult run(const Request& want = {}) const { return multihead(options, want); }
  std::string refused() const {
    return refusal([&] { run(); });
  }

  MultiheadOptions options;

 private:
  TemporaryFolder folder_;
};

TEST_CASE("a key of the layer's own is seen behind those that every mask is about") {
  OnDisk layer(layer_with({4}));
  layer.options.mask.causal = true;
  layer.options.mask.key_lengths = given<std::int64_t>({1}, {2});
  const MultiheadResult one = layer.run({"weights", "bias_k", "k", "present_k"});
  CHECK(one.attention.weights->shape() == Shape{2, 3, 4});
  CHECK(one.k->shape() == Shape{2, 3, 2});
  CHECK(one.present_k->shape() == Shape{1, 2, 3, 2});
  CHECK(values_of(one.bias_k) == values_of(AnyTensor(some({4}, 5))));
  const std::vector<double> weights = values_of(one.attention.weights);
  CHECK((weights[1] == 0 && weights[2] == 0 && weights[3] > 0));
  CHECK((weights[9] > 0 && weights[10] == 0 && weights[11] > 0));

  layer.options.layer.add_zero_attn = true;
  const MultiheadResult two = layer.run({"weights", "raw_scores"});
  CHECK(two.attention.weights->shape() == Shape{2, 3, 5});
  CHECK(two.attention.raw_scores->at(4) == 0);
  CHECK(two.attention.weights->at(4) > 0);
  // The weights of the others keep their ratio.
  CHECK(two.attention.weights->at(0) / two.attention.weights->at(3) ==
        Approx(weights[0] / weights[3]));
}

TEST_CASE("nothing else to see, a query takes the layer's own value") {
  OnDisk layer(layer_with({4}));
  layer.options.mask.key_lengths = given<std::int64_t>({1}, {0});
  const MultiheadResult own = layer.run({"concat"});
  CHECK(own.empty_rows == 0);
  const std::vector<double> expected = values_of(AnyTensor(some({4}, 6)));
  for (Index i = 0; i < 12; ++i) {
    CHECK(own.concat->at(i) == Approx(expected[static_cast<std::size_t>(i % 4)]));
  }
}

TEST_CASE("torch's own keys of [1, 1, width] are those of [width]") {
  const OnDisk flat(layer_with({4})), deep(layer_with({1, 1, 4}));
  CHECK(values_of(flat.run().output) == values_of(deep.run().output));
  Tensors without = layer_with({4});
  without.resize(4);
  CHECK(values_of(OnDisk(without).run().output) != values_of(flat.run().output));
  Tensors torch = layer_with({1, 1, 4});
  Tensor<double> in_proj({12, 4}), out_proj({4, 4});
  for (Index i = 0; i < 3; ++i) {
    in_proj.matrix().middleRows(i * 4, 4) =
        some({4, 4}, static_cast<int>(i) + 1).matrix().transpose();
  }
  out_proj.matrix() = some({4, 4}, 4).matrix().transpose();
  torch.erase(torch.begin(), torch.begin() + 4);
  for (NamedTensor& tensor : torch) tensor.name = "decoder.self_attn." + tensor.name;
  torch.push_back({"decoder.self_attn.in_proj_weight", in_proj});
  torch.push_back({"decoder.self_attn.out_proj.weight", out_proj});
  CHECK(values_of(OnDisk(torch).run().output) == values_of(flat.run().output));
}

TEST_CASE("a saved layer keeps its own keys, and that one of them is 0") {
  OnDisk layer(layer_with({4}));
  layer.options.layer.add_zero_attn = true;
  layer.options.layer.save_params.path = layer.path("saved.safetensors");
  const MultiheadResult first = layer.run();
  write_layer(layer.options.layer.save_params.path, first.layer.value(), "save_params");
  layer.options.layer = {};
  layer.options.layer.params.path = layer.path("saved.safetensors");
  layer.options.sizes.heads = {};
  const MultiheadResult second = layer.run({"weights"});
  CHECK(values_of(second.output) == values_of(first.output));
  CHECK(second.attention.weights->shape()[-1] == 5);

  const std::string odd = layer.path("odd.safetensors");
  write_safetensors(odd, layer_with({4}), "params", {{"add_zero_attn", "yes"}});
  layer.options.layer.params.path = odd;
  layer.options.sizes.heads = 2;
  CHECK(layer.refused().find("__metadata__.add_zero_attn: got yes, need true or false") !=
        std::string::npos);
}

TEST_CASE("a layer may be drawn with a key of zeros") {
  MultiheadOptions options;
  options.sizes.n = 3;
  options.layer.add_zero_attn = true;
  CHECK(multihead(options, {"weights"}).attention.weights->shape() == Shape{2, 3, 4});
  WeightsOptions look;
  look.sizes.n = 3;
  look.role = Role::decoder;
  look.layer.add_zero_attn = true;
  CHECK(weights(look, {"weights"}).weights->shape() == Shape{2, 3, 4});
}

TEST_CASE("own keys that do not fit the layer are refused") {
  CHECK(OnDisk(layer_with({1, 4})).refused().find("bias_k: got [1, 4], need [width]") !=
        std::string::npos);
  CHECK(OnDisk(layer_with({6})).refused().find("bias_k: got [6], need [4], the columns of w_k") !=
        std::string::npos);
  Tensors one = layer_with({4});
  one.pop_back();
  CHECK(OnDisk(one).refused().find("bias_v: is needed") != std::string::npos);
}

TEST_CASE("own keys of a 16-bit layer are rounded with it") {
  OnDisk layer(layer_with({4}));
  layer.options.sizes.dtype = Precision::bfloat16;
  const MultiheadResult result = layer.run({"bias_k"});
  CHECK(result.bias_k->dtype() == DType::bfloat16);
  Tensors rounded = layer_with({4});
  for (NamedTensor& tensor : rounded) tensor.tensor = tensor.tensor.cast(DType::bfloat16);
  OnDisk before(rounded);
  before.options.inputs.x.values = layer.options.inputs.x.values->cast(DType::bfloat16);
  CHECK(values_of(before.run().output) == values_of(result.output));
}

TEST_CASE("own keys have gradients, which differences agree with") {
  OnDisk layer(layer_with({4}));
  layer.options.gradients.grad_output.values = some({3, 4}, 8);
  const MultiheadResult result = layer.run({"grad_bias_k", "grad_bias_v"});
  CHECK(result.gradients.grad_bias_k->shape() == Shape{4});
  CHECK(result.gradients.grad_bias_v->shape() == Shape{4});

  GradcheckOptions check;
  check.layer = layer.options.layer;
  check.inputs = layer.options.inputs;
  check.sizes.heads = 2;
  check.role = Role::decoder;
  double without_zeros = 0;
  for (const bool zero : {false, true}) {
    check.layer.add_zero_attn = zero;
    const GradcheckResult checked = gradcheck(check, {});
    CHECK(checked.passed);
    REQUIRE(checked.rows.size() == 7);
    CHECK(checked.rows[5].tensor == "bias_k");
    CHECK(checked.rows[5].norm > .01);
    CHECK(checked.rows[6].tensor == "bias_v");
    CHECK(checked.rows[6].norm > .1);
    CHECK(std::abs(checked.rows[6].norm - without_zeros) > .01);
    without_zeros = checked.rows[6].norm;
  }
}

}  // namespace
}  // namespace attnlab
