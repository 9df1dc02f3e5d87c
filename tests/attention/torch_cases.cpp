// Results of PyTorch: nn.MultiheadAttention and scaled_dot_product_attention.

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attention/attention_test.h"
#include "attnlab/attention/multi_head_backward.h"
#include "attnlab/attention/scaled_dot_product_backward.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/json.h"
#include "attnlab/io/safetensors.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

using test::close;

class TorchCase {
 public:
  explicit TorchCase(const std::filesystem::path& folder)
      : folder_(folder),
        json_(parse_json(read_file((folder / "case.json").string(), "case"), "case.json")) {}

  std::string name() const { return json_["name"].get<std::string>(); }
  bool has(const std::string& array) const { return json_["arrays"].contains(array); }
  template <class V>
  V attribute(const std::string& key) const {
    return json_["attributes"][key].get<V>();
  }
  // What older cases do not speak of.
  bool attribute_or(const std::string& key, bool otherwise) const {
    return json_["attributes"].value(key, otherwise);
  }
  std::string dtype(const std::string& array) const {
    return json_["arrays"][array][0].get<std::string>();
  }
  AnyTensor read(const std::string& array) const {
    std::vector<std::string> notes;
    return read_tensor({.path = (folder_ / (array + ".npy")).string(), .values = {}}, array, notes);
  }
  AnyTensor weight(const std::string& tensor) const {
    std::vector<std::string> notes;
    return file().read(tensor, notes);
  }
  bool has_weight(const std::string& tensor) const { return file().has(tensor); }

 private:
  SafetensorsFile file() const { return {(folder_ / "weights.safetensors").string(), "params"}; }

  std::filesystem::path folder_;
  Json json_;
};

// With axes of 1 put before those there are.
template <class T>
Tensor<T> with_rank(Tensor<T> t, int rank) {
  std::vector<Index> axes(t.shape().axes().begin(), t.shape().axes().end());
  while (static_cast<int>(axes.size()) < rank) axes.insert(axes.begin(), 1);
  return std::move(t).reshaped(Shape(std::span<const Index>(axes)));
}

// torch keeps W as [out, in].
template <class T>
Tensor<T> transposed(const Tensor<T>& w, Index first_row, Index rows) {
  Tensor<T> t({w.shape()[1], rows});
  t.matrix() = w.matrix().middleRows(first_row, rows).transpose();
  return t;
}

template <class T>
MultiHeadParams<T> torch_params(const TorchCase& c) {
  const Index d_model = c.attribute<Index>("d_model");
  const auto read = [&](const std::string& name) { return c.weight(name).cast<T>(); };
  MultiHeadParams<T> params;
  params.heads = params.kv_heads = c.attribute<Index>("heads");
  if (c.has_weight("in_proj_weight")) {
    const auto all = read("in_proj_weight");
    params.w_q = transposed(all, 0, d_model);
    params.w_k = transposed(all, d_model, d_model);
    params.w_v = transposed(all, 2 * d_model, d_model);
  } else {
    params.w_q = transposed(read("q_proj_weight"), 0, d_model);
    params.w_k = transposed(read("k_proj_weight"), 0, d_model);
    params.w_v = transposed(read("v_proj_weight"), 0, d_model);
  }
  params.w_o = transposed(read("out_proj.weight"), 0, d_model);
  if (c.has_weight("in_proj_bias")) {
    const auto all = read("in_proj_bias");
    const auto third = [&](Index i) {
      Tensor<T> b({d_model});
      std::copy_n(all.data() + i * d_model, d_model, b.data());
      return b;
    };
    params.b_q = third(0);
    params.b_k = third(1);
    params.b_v = third(2);
    params.b_o = read("out_proj.bias");
  }
  if (c.has_weight("bias_k")) {
    params.bias_k = read("bias_k").reshaped({d_model});
    params.bias_v = read("bias_v").reshaped({d_model});
  }
  params.add_zero_attn = c.attribute_or("add_zero_attn", false);
  return params;
}

// torch's masks hide where true; those of numbers are added.
void set_torch_masks(const TorchCase& c, Mask& mask) {
  if (c.attribute<bool>("causal")) mask.set_causal();
  if (c.has("attn_mask_torch")) {
    const AnyTensor given = c.read("attn_mask_torch");
    if (given.dtype() == DType::boolean) {
      Tensor<bool> may_attend = given.get<bool>();
      for (bool& value : may_attend.values()) value = !value;
      mask.set_boolean(std::move(may_attend));
    } else {
      mask.set_additive(given);
    }
  }
  if (c.has("key_padding_mask_torch")) {
    const Tensor<bool> padding = c.read("key_padding_mask_torch").get<bool>();
    Tensor<bool> may_attend({padding.shape()[0], 1, 1, padding.shape()[1]});
    for (Index i = 0; i < padding.size(); ++i) may_attend[i] = !padding[i];
    mask.set_boolean(std::move(may_attend));
  }
}

template <class T>
void check_equal(const TorchCase& c, const std::string& expected, const Tensor<T>& got,
                 double tolerance) {
  INFO(expected);
  CHECK(close(got, test::doubles(c.read(expected).cast<double>()), tolerance));
}

// torch adds up the gradients of an input that it was given as several, and keeps those of weights
// as [out, in], one below the other where the weights are.
template <class T>
void check_layer_gradients(const TorchCase& c, const MultiHeadGradients<T>& gradients,
                           double tolerance) {
  const auto plus = [](Tensor<T> a, const Tensor<T>& b) {
    for (Index i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  };
  const std::string source = c.attribute<std::string>("source");
  const Tensor<T>&query = *gradients.grad_query, &key = *gradients.grad_key,
        &value = *gradients.grad_value;
  const bool self = source == "self", separate = source == "separate";
  check_equal(c, "expected_grad_query", self ? plus(plus(query, key), value) : query, tolerance);
  if (!self) check_equal(c, "expected_grad_key", separate ? key : plus(key, value), tolerance);
  if (separate) check_equal(c, "expected_grad_value", value, tolerance);

  const auto turned = [](const Tensor<T>& w) { return transposed(w, 0, w.shape()[0]); };
  const std::array<Tensor<T>, 3> weights = {
      turned(*gradients.grad_w_q), turned(*gradients.grad_w_k), turned(*gradients.grad_w_v)};
  if (c.has("expected_grad_in_proj_weight")) {
    const Index d_model = c.attribute<Index>("d_model");
    Tensor<T> all({3 * d_model, d_model});
    for (Index i = 0; i < 3; ++i) {
      all.matrix().middleRows(i * d_model, d_model) = weights[static_cast<std::size_t>(i)].matrix();
    }
    check_equal(c, "expected_grad_in_proj_weight", all, tolerance);
  } else {
    check_equal(c, "expected_grad_q_proj_weight", weights[0], tolerance);
    check_equal(c, "expected_grad_k_proj_weight", weights[1], tolerance);
    check_equal(c, "expected_grad_v_proj_weight", weights[2], tolerance);
  }
  check_equal(c, "expected_grad_out_proj_weight", turned(*gradients.grad_w_o), tolerance);
  Tensor<T> biases({gradients.grad_b_q->size() * 3});
  T* end = biases.data();
  for (const auto* bias : {&gradients.grad_b_q, &gradients.grad_b_k, &gradients.grad_b_v}) {
    end = std::copy_n((*bias)->data(), (*bias)->size(), end);
  }
  check_equal(c, "expected_grad_in_proj_bias", biases, tolerance);
  check_equal(c, "expected_grad_out_proj_bias", *gradients.grad_b_o, tolerance);
  if (!c.has("expected_grad_bias_k")) return;
  check_equal(c, "expected_grad_bias_k", *gradients.grad_bias_k, tolerance);
  check_equal(c, "expected_grad_bias_v", *gradients.grad_bias_v, tolerance);
}

template <class T>
void check_layer(const TorchCase& c, double tolerance) {
  const auto read = [&](const char* name) { return with_rank(c.read(name).cast<T>(), 3); };
  const auto query = read("query");
  const auto key = c.has("key") ? read("key") : query;
  const auto value = c.has("value") ? read("value") : key;
  const auto params = torch_params<T>(c);
  Mask mask(query.shape()[0], params.heads, query.shape()[1], key.shape()[1]);
  set_torch_masks(c, mask);
  const AttentionSettings settings{.scale = 1 / std::sqrt(static_cast<double>(params.shape().d_k))};
  const auto layer = multi_head(query, key, value, params, mask, settings, {"weights"});
  check_equal(c, "expected_output", layer.output, tolerance);
  check_equal(c, "expected_weights", *layer.attention.weights, tolerance);
  if (!c.has("grad_output")) return;
  check_layer_gradients(
      c, multi_head_backward(query, key, value, params, layer, read("grad_output"), mask, settings),
      tolerance);
}

template <class T>
void check_attention(const TorchCase& c, double tolerance) {
  const auto read = [&](const char* name) { return with_rank(c.read(name).cast<T>(), 4); };
  const auto q = read("Q"), k = read("K"), v = read("V");
  Mask mask = test::no_mask(q, k);
  if (c.attribute<bool>("causal")) mask.set_causal();
  const AttentionSettings settings{.scale = c.attribute<double>("scale")};
  const auto result = scaled_dot_product(q, k, v, mask, settings, {"weights"});
  const auto check = [&](const Tensor<T>& got, const char* expected) {
    check_equal(c, expected, got, tolerance);
  };
  check(result.output, "expected_Y");
  check(*result.weights, "expected_weights");
  const auto gradients = scaled_dot_product_backward(q, k, v, read("grad_Y"), mask, settings);
  check(*gradients.grad_q, "expected_grad_Q");
  check(*gradients.grad_k, "expected_grad_K");
  check(*gradients.grad_v, "expected_grad_V");
}

TEST_CASE("attention and layers agree with PyTorch") {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATTNLAB_TEST_DATA "/torch")) {
    const TorchCase c(entry.path());
    INFO(c.name());
    const bool layer = c.has("query");
    if (c.dtype(layer ? "query" : "Q") == "float32") {
      layer ? check_layer<float>(c, 3e-6) : check_attention<float>(c, 3e-6);
    } else {
      layer ? check_layer<double>(c, 1e-10) : check_attention<double>(c, 1e-10);
    }
    ++cases;
  }
  CHECK(cases == 22);
}

}  // namespace
}  // namespace attnlab
