#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "attnlab/attention/multi_head.h"
#include "attnlab/core/describe.h"
#include "attnlab/experiments/layer_file.h"
#include "attnlab/experiments/size_options.h"

namespace attnlab {

template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<Init> = {"xavier_uniform", "normal"};

// What the layer is applied to: files, or drawn.
struct LayerInputOptions {
  TensorSource x, memory, query, key, value;

  static constexpr auto fields() {
    using O = LayerInputOptions;
    return std::tuple(
        field("x", &O::x, "the sequence [n, d_model] or [batch, n, d_model]", {.unit = "FILE"}),
        field("memory", &O::memory, "the sequence attended to: cross attention", {.unit = "FILE"}),
        field("query", &O::query, "with key and value, in place of x: three inputs apart",
              {.unit = "FILE"}),
        field("key", &O::key, "where the keys come from", {.unit = "FILE"}),
        field("value", &O::value, "where the values come from", {.unit = "FILE"}));
  }
};

// Where the layer's weights come from: a file, or drawn.
struct LayerOptions {
  FilePath params;
  ParamsLayout params_layout = ParamsLayout::automatic;
  std::string prefix;
  std::optional<Index> layer;
  std::optional<Index> d_model;
  bool bias = false;
  bool qk_norm = false;
  std::optional<double> qk_norm_eps;
  Init init = Init::xavier_uniform;
  std::optional<double> std;
  bool add_zero_attn = false;
  FilePath save_params;

  static constexpr auto fields() {
    using O = LayerOptions;
    return std::tuple(
        field("params", &O::params,
              "weights of the layer, .safetensors, .npz or .json; drawn unless given",
              {.unit = "FILE"}),
        field("params_layout", &O::params_layout,
              "attnlab: w_q [in, out] ...; torch: nn.MultiheadAttention; bert, gpt2, llama: models "
              "of Hugging Face transformers; auto recognises it by the names"),
        field("prefix", &O::prefix, "what the names in the file start with", {.unit = "NAME"}),
        field("layer", &O::layer, "which layer of the file: the last number in its names",
              {.range = at_least<Index>(0)}),
        field("d_model", &O::d_model, "width of the layer (that of the input, or 8)",
              {.range = at_least<Index>(1)}),
        field("bias", &O::bias, "draw a layer with biases; they start at 0"),
        field(
            "qk_norm", &O::qk_norm,
            "draw a layer that normalises each query and key by its root mean square; the weights "
            "q_norm and k_norm start at 1"),
        field("qk_norm_eps", &O::qk_norm_eps,
              "added to the mean square by layers that normalise queries and keys (1e-6 unless "
              "given)",
              {.unit = "EPS", .range = above(0.0)}),
        field("init", &O::init, "how the weights are drawn"),
        field("std", &O::std, "standard deviation of weights drawn as normal (0.02 unless given)",
              {.range = at_least(0.0)}),
        field("add_zero_attn", &O::add_zero_attn,
              "a key and a value of zeros behind all others, seen by every query, as in PyTorch's "
              "nn.MultiheadAttention"),
        field("save_params", &O::save_params, "write the layer in the attnlab layout",
              {.unit = "FILE.safetensors"}));
  }
};

}  // namespace attnlab
