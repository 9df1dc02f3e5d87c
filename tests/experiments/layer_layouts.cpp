// The same layer in every layout that files have gives what it gives in our own.

#include <cmath>

#include "attnlab/experiments/multihead.h"
#include "attnlab/io/safetensors.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Tensors = std::vector<NamedTensor>;

// Numbers that no two layers or places share.
Tensor<float> some(const Shape& shape, int which) {
  Tensor<float> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) {
    tensor[i] = std::sin(static_cast<float>(1 + i * 7 + which * 1000)) / 2;
  }
  return tensor;
}

Tensor<float> turned(const Tensor<float>& w) {
  Tensor<float> t({w.shape()[1], w.shape()[0]});
  t.matrix() = w.matrix().transpose();
  return t;
}

// [rows, a + b + c] of three matrices, [a + b + c] of three vectors.
Tensor<float> beside(const Tensor<float>& a, const Tensor<float>& b, const Tensor<float>& c) {
  const Index rows = a.shape().rank() == 1 ? 1 : a.shape()[0];
  const Index width = (a.size() + b.size() + c.size()) / rows;
  std::vector<float> all;
  for (Index i = 0; i < rows; ++i) {
    for (const Tensor<float>* t : {&a, &b, &c}) {
      const Index columns = t->size() / rows;
      all.insert(all.end(), t->data() + i * columns, t->data() + (i + 1) * columns);
    }
  }
  Tensor<float> result(a.shape().rank() == 1 ? Shape{width} : Shape{rows, width});
  std::copy(all.begin(), all.end(), result.data());
  return result;
}

struct Layer {
  Tensor<float> w_q, w_k, w_v, w_o, b_q, b_k, b_v, b_o;

  Layer(int which, Index kv_width, Index d_key = 8)
      : w_q(some({8, 8}, which)),
        w_k(some({d_key, kv_width}, which + 1)),
        w_v(some({d_key, kv_width}, which + 2)),
        w_o(some({8, 8}, which + 3)),
        b_q(some({8}, which + 4)),
        b_k(some({kv_width}, which + 5)),
        b_v(some({kv_width}, which + 6)),
        b_o(some({8}, which + 7)) {}

  Tensors plain(const std::string& prefix = "") const {
    return {{prefix + "w_q", w_q}, {prefix + "w_k", w_k}, {prefix + "w_v", w_v},
            {prefix + "w_o", w_o}, {prefix + "b_q", b_q}, {prefix + "b_k", b_k},
            {prefix + "b_v", b_v}, {prefix + "b_o", b_o}};
  }
  Tensors torch(const std::string& prefix = "") const {
    return {{prefix + "in_proj_weight", turned(beside(w_q, w_k, w_v))},
            {prefix + "in_proj_bias", beside(b_q, b_k, b_v)},
            {prefix + "out_proj.weight", turned(w_o)},
            {prefix + "out_proj.bias", b_o}};
  }
  Tensors torch_apart() const {
    return {{"q_proj_weight", turned(w_q)},   {"k_proj_weight", turned(w_k)},
            {"v_proj_weight", turned(w_v)},   {"in_proj_bias", beside(b_q, b_k, b_v)},
            {"out_proj.weight", turned(w_o)}, {"out_proj.bias", b_o}};
  }
  Tensors bert(const std::string& prefix) const {
    const std::string self = prefix + "attention.self.";
    return {{self + "query.weight", turned(w_q)},
            {self + "query.bias", b_q},
            {self + "key.weight", turned(w_k)},
            {self + "key.bias", b_k},
            {self + "value.weight", turned(w_v)},
            {self + "value.bias", b_v},
            {prefix + "attention.output.dense.weight", turned(w_o)},
            {prefix + "attention.output.dense.bias", b_o}};
  }
  Tensors gpt2(const std::string& prefix) const {
    return {{prefix + "attn.c_attn.weight", beside(w_q, w_k, w_v)},
            {prefix + "attn.c_attn.bias", beside(b_q, b_k, b_v)},
            {prefix + "attn.c_proj.weight", w_o},
            {prefix + "attn.c_proj.bias", b_o}};
  }
  Tensors llama(const std::string& prefix) const {
    const std::string self = prefix + "self_attn.";
    return {{self + "q_proj.weight", turned(w_q)}, {self + "k_proj.weight", turned(w_k)},
            {self + "v_proj.weight", turned(w_v)}, {self + "o_proj.weight", turned(w_o)},
            {self + "q_proj.bias", b_q},           {self + "k_proj.bias", b_k},
            {self + "v_proj.bias", b_v},           {self + "o_proj.bias", b_o}};
  }
};

Tensors both(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

LayerOptions by(const std::string& prefix, std::optional<Index> number = {}) {
  LayerOptions options;
  options.prefix = prefix;
  options.layer = number;
  return options;
}

LayerOptions of(ParamsLayout layout) {
  LayerOptions options;
  options.params_layout = layout;
  return options;
}

// Runs the layer that a file of these tensors holds on three positions.
class Runner {
 public:
  Runner() { inputs.x.values = some({3, 8}, 99); }

  MultiheadResult run(const Tensors& tensors, const LayerOptions& layer = {}) const {
    MultiheadOptions options;
    options.layer = layer;
    options.layer.params.path = folder_ / "layer.safetensors";
    write_safetensors(options.layer.params.path, tensors, "params");
    options.inputs = inputs;
    options.sizes.heads = 4;
    options.sizes.kv_heads = kv_heads;
    return multihead(options, {});
  }
  std::vector<double> output(const Tensors& tensors, const LayerOptions& layer = {}) const {
    return values_of(run(tensors, layer).output);
  }
  std::string refused(const Tensors& tensors, const LayerOptions& layer = {}) const {
    return refusal([&] { run(tensors, layer); });
  }

  LayerInputOptions inputs;
  std::optional<Index> kv_heads;

 private:
  TemporaryFolder folder_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a layer is the same in the layouts of PyTorch, BERT and GPT-2 as in our own") {
  const Runner runner;
  const Layer layer(0, 8);
  const std::vector<double> expected = runner.output(layer.plain());
  CHECK(runner.output(layer.torch()) == expected);
  CHECK(runner.output(layer.torch("layers.0.self_attn.")) == expected);
  CHECK(runner.output(layer.bert("bert.encoder.layer.0.")) == expected);
  CHECK(runner.output(layer.gpt2("transformer.h.0.")) == expected);
  CHECK(runner.output(layer.llama("model.layers.0.")) == expected);
  CHECK(runner.output(Layer(1, 8).plain()) != expected);
}

TEST_CASE("PyTorch's projections apart have widths of their own") {
  Runner runner;
  const Layer layer(0, 8, 5);
  std::swap(runner.inputs.query, runner.inputs.x);
  runner.inputs.key.values = runner.inputs.value.values = some({4, 5}, 98);
  CHECK(runner.output(layer.torch_apart()) == runner.output(layer.plain()));
}

TEST_CASE("key and value heads are as many as the widths leave room for") {
  Runner runner;
  const Layer layer(0, 4);
  const MultiheadResult inferred = runner.run(layer.llama("model.layers.0."));
  runner.kv_heads = 2;
  CHECK(values_of(inferred.output) == runner.output(layer.plain()));
  runner.kv_heads = 4;
  CHECK_FALSE(runner.refused(layer.llama("")).empty());
}

TEST_CASE("what was recognised, and what the model adds, is said in notes") {
  const Runner runner;
  const Layer layer(0, 8);
  CHECK(mentions(runner.run(layer.plain()).notes, "the layer is in the attnlab layout"));
  const auto gpt2 = runner.run(layer.gpt2("h.3.")).notes;
  CHECK(mentions(gpt2, "the layer is in the gpt2 layout, its names beginning with h.3."));
  CHECK(mentions(gpt2, "--causal"));
  const auto llama = runner.run(layer.llama("model.layers.0.")).notes;
  CHECK(mentions(llama, "rotates queries and keys: with --rope-theta, the rope_theta of"));
}

TEST_CASE("a layer of many is chosen by its number or by what its names begin with") {
  const Runner runner;
  const Layer first(0, 8);
  const Layer second(10, 8);
  const Layer third(20, 8);
  const Tensors file = both(both(first.bert("encoder.layer.1."), second.bert("encoder.layer.11.")),
                            third.bert("decoder.layer.1."));
  const auto named = [&](const std::string& prefix) { return runner.output(file, by(prefix)); };
  CHECK(runner.output(file, by("", 11)) == runner.output(second.plain()));
  CHECK(named("encoder.layer.1") == runner.output(first.plain()));
  CHECK(named("encoder.layer.11.") == runner.output(second.plain()));
  CHECK(named("decoder") == runner.output(third.plain()));
  CHECK(runner.output(file, by("encoder", 1)) == runner.output(first.plain()));
  const std::string which = "say which one by layer or prefix: ";
  const std::string all =
      "decoder.layer.1. (bert), encoder.layer.1. (bert), encoder.layer.11. (bert)";
  CHECK(contains(runner.refused(file), "got 3 layers, " + which + all));
  CHECK(contains(runner.refused(file, by("", 1)), "got 2 layers, " + which));
  CHECK(contains(runner.refused(file, by("", 2)), "layer: got 2, need one of its layers: " + all));
  CHECK(contains(runner.refused(file, by("enc")), "prefix: got enc, need one of its"));
}

TEST_CASE("a prefix is also any beginning of the names that makes them a layer's") {
  const Runner runner;
  const Layer layer(0, 8);
  const Tensors file = both(layer.plain("first_"), Layer(1, 8).plain("second_"));
  CHECK(runner.output(file, by("first_")) == runner.output(layer.plain()));
  CHECK(
      contains(runner.refused(file), "need a layer of a known layout: w_q w_o, or in_proj_weight"));
}

TEST_CASE("a layout that was asked for is the only one that is looked for") {
  const Runner runner;
  const Layer layer(0, 8);
  const Tensors file = both(layer.torch("a."), Layer(1, 8).gpt2("h.0."));
  CHECK(contains(runner.refused(file), "got 2 layers"));
  CHECK(runner.output(file, of(ParamsLayout::torch)) == runner.output(layer.plain()));
  CHECK(contains(runner.refused(file, of(ParamsLayout::bert)),
                 "need a layer of bert layout: attention.self.query.weight"));
  Tensors part = layer.llama("");
  part.erase(part.begin() + 3);
  CHECK(contains(runner.refused(part), "got self_attn.k_proj.bias, self_attn.k_proj.weight"));
}

TEST_CASE("tensors that would change what a layer gives are refused") {
  const Runner runner;
  const Layer layer(0, 8);
  const auto with = [&](Tensors file, const std::string& name) {
    file.push_back({name, some({8}, 50)});
    return runner.refused(file);
  };
  CHECK(contains(with(layer.bert("m."), "m.attention.self.distance_embedding.weight"),
                 "a layer with this is more than is computed here"));
  CHECK(with(layer.bert("m."), "n.attention.self.distance_embedding.weight").empty());
}

TEST_CASE("a layer is read from JSON as from safetensors, and other files are refused") {
  const TemporaryFolder folder;
  MultiheadOptions options;
  options.inputs.x = given<double>({2, 1}, {1, 2});
  options.sizes.heads = 1;
  options.layer.params.path = folder.write(
      "layer.json", R"({"h.0.attn.c_attn.weight": [[1, 2, 3]], "h.0.attn.c_proj.weight": [[2]]})");
  const MultiheadResult result = multihead(options, {"w_q", "w_k", "w_v"});
  CHECK(values_of(result.w_q) == std::vector<double>{1});
  CHECK(values_of(result.w_k) == std::vector<double>{2});
  CHECK(values_of(result.w_v) == std::vector<double>{3});
  options.layer.params.path = folder.write(
      "layer.json", R"({"attn.c_attn.weight": [[1, 2]], "attn.c_proj.weight": [[2]]})");
  CHECK(contains(refusal([&] { multihead(options, {}); }),
                 "the second axis must be a multiple of 3: queries, keys and values"));
  options.layer.params.path = folder.write("layer.csv", "1");
  CHECK(contains(refusal([&] { multihead(options, {}); }),
                 "need a .safetensors, .npz or .json file"));
  options.layer.params = {};
  options.layer.layer = 1;
  CHECK(contains(refusal([&] { multihead(options, {}); }), "layer: got 1, needs params"));
}

}  // namespace
}  // namespace attnlab
