#include "attnlab/experiments/multihead.h"

#include <cmath>
#include <filesystem>

#include "attnlab/experiments/roles.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

MultiheadOptions drawn(Index n, Index d_model, Index heads) {
  MultiheadOptions options;
  options.sizes.n = n;
  options.layer.d_model = d_model;
  options.sizes.heads = heads;
  return options;
}

TEST_CASE("a drawn layer has the shapes of the paper") {
  const MultiheadResult result =
      multihead(drawn(4, 8, 2), {"x", "w_q", "q", "weights", "heads", "concat"});
  CHECK(result.x->shape() == Shape{4, 8});
  CHECK(result.w_q->shape() == Shape{8, 8});
  CHECK(result.q->shape() == Shape{2, 4, 4});
  CHECK(result.attention.weights->shape() == Shape{2, 4, 4});
  CHECK(result.heads->shape() == Shape{2, 4, 4});
  CHECK(result.concat->shape() == Shape{4, 8});
  CHECK(result.output->shape() == Shape{4, 8});
}

TEST_CASE("the three uses differ in their sources and mask") {
  MultiheadOptions options = drawn(4, 8, 2);
  options.role = Role::decoder;
  const std::vector<double> weights = values_of(multihead(options, {"weights"}).attention.weights);
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = i + 1; j < 4; ++j) CHECK(weights[h * 16 + i * 4 + j] == 0);
    }
  }
  options.role = Role::cross;
  options.sizes.m = 6;
  CHECK(multihead(options, {"weights"}).attention.weights->shape() == Shape{2, 4, 6});
  options.role = Role::encoder;
  CHECK(refusal([&] { multihead(options, {}); }).find("as many keys as queries") !=
        std::string::npos);
  options.sizes.m = {};
  options.mask.causal = true;
  CHECK(refusal([&] { multihead(options, {}); }).find("role") != std::string::npos);
}

TEST_CASE("self attention is attention from a sequence to itself") {
  MultiheadOptions options = drawn(3, 4, 2);
  MultiheadResult self = multihead(options, {"x"});
  options.layer.d_model = {};
  options.sizes.n = {};
  options.inputs.x.values = *self.x;
  options.inputs.memory.values = *self.x;
  CHECK(values_of(multihead(options, {}).output) == values_of(self.output));
  options.inputs.memory = options.inputs.x = {};
  options.inputs.query.values = options.inputs.key.values = options.inputs.value.values = *self.x;
  CHECK(values_of(multihead(options, {}).output) == values_of(self.output));
}

TEST_CASE("a saved layer reads back as the same layer") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "attnlab_saved_layer.safetensors").string();
  MultiheadOptions options = drawn(3, 8, 4);
  options.sizes.kv_heads = 2;
  options.layer.bias = true;
  options.layer.save_params.path = path;
  const MultiheadResult first = multihead(options, {"x", "weights"});
  write_layer(path, first.layer.value(), "save_params");
  MultiheadOptions again;
  again.inputs.x.values = *first.x;
  again.layer.params.path = path;
  const MultiheadResult second = multihead(again, {"weights"});
  CHECK(values_of(second.output) == values_of(first.output));
  CHECK(values_of(second.attention.weights) == values_of(first.attention.weights));
  again.layer.d_model = 9;
  CHECK(refusal([&] { multihead(again, {}); }).find("d_model: got 9") != std::string::npos);
  again.layer.d_model = {};
  again.layer.params_layout = ParamsLayout::torch;
  CHECK(refusal([&] { multihead(again, {}); }).find("in_proj_weight") != std::string::npos);
  again.layer.params_layout = ParamsLayout::automatic;
  again.layer.bias = true;
  CHECK(refusal([&] { multihead(again, {}); }).find("bias") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("sizes of a layer that do not fit are refused with both numbers") {
  const std::string text = refusal([] { multihead(drawn(4, 10, 3), {}); });
  CHECK(text.find("3") != std::string::npos);
  CHECK(text.find("10") != std::string::npos);
  MultiheadOptions options;
  options.inputs.query = filled({1, 3, 4}, 1);
  options.inputs.key = options.inputs.value = filled({4, 3, 4}, 1);
  CHECK(refusal([&] { multihead(options, {}); }).find("[4, 3, 4]") != std::string::npos);
  options.inputs.value = {};
  CHECK(refusal([&] { multihead(options, {}); }).find("value: is needed") != std::string::npos);
}

TEST_CASE("query, key and value may differ in width") {
  MultiheadOptions options;
  options.inputs.query = filled({2, 4}, 1);
  options.inputs.key = filled({3, 3}, 1);
  options.inputs.value = filled({3, 5}, 1);
  options.sizes.heads = 2;
  const MultiheadResult result = multihead(options, {"weights"});
  CHECK(result.output->shape() == Shape{2, 4});
  CHECK(result.attention.weights->shape() == Shape{2, 2, 3});
}

TEST_CASE("the roles are chained: the decoder reads what the encoder wrote") {
  RolesOptions options;
  options.n_source = 6;
  options.n_target = 4;
  const RolesResult result = roles(options, {"source", "target"});
  CHECK(result.encoder_weights->shape() == Shape{2, 6, 6});
  CHECK(result.decoder_weights->shape() == Shape{2, 4, 4});
  CHECK(result.cross_weights->shape() == Shape{2, 4, 6});
  CHECK(result.cross_output->shape() == Shape{4, 8});
  CHECK(values_of(result.decoder_weights)[1] == 0);
  CHECK(values_of(result.encoder_weights)[1] > 0);
  RolesOptions given_options;
  given_options.source.values = *result.source;
  given_options.target.values = *result.target;
  CHECK(values_of(roles(given_options, {}).cross_output) == values_of(result.cross_output));
  given_options.heads = 3;
  CHECK(refusal([&] { roles(given_options, {}); }).find("heads: got 3") != std::string::npos);
}

TEST_CASE("a 16-bit layer is computed from what it would be saved as") {
  for (const Precision precision : {Precision::float16, Precision::bfloat16}) {
    MultiheadOptions options = drawn(4, 8, 2);
    options.sizes.dtype = precision;
    options.layer.bias = true;
    const TemporaryFolder folder;
    options.layer.save_params.path = folder / "layer.safetensors";
    const MultiheadResult first = multihead(options, {"x"});
    CHECK(first.x->dtype() == first.output->dtype());
    MultiheadOptions again;
    again.inputs.x.values = *first.x;
    again.layer.params = options.layer.save_params;
    write_layer(again.layer.params.path, first.layer.value(), "params");
    CHECK(values_of(multihead(again, {}).output) == values_of(first.output));
  }
}

TEST_CASE("roles in a 16-bit type start from rounded sequences") {
  RolesOptions options;
  options.dtype = Precision::float16;
  const RolesResult first = roles(options, {"source", "target"});
  RolesOptions again;
  again.source.values = *first.source;
  again.target.values = *first.target;
  const RolesResult second = roles(again, {});
  CHECK(second.cross_output->dtype() == DType::float16);
  CHECK(values_of(second.encoder_weights) == values_of(first.encoder_weights));
}

}  // namespace
}  // namespace attnlab
