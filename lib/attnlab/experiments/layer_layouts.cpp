#include "attnlab/experiments/layer_layouts.h"

namespace attnlab {
namespace {

constexpr bool kTransposed = true;

// nn.MultiheadAttention, torch/nn/modules/activation.py.
constexpr LayerLayout torch(LayerPiece w_q, LayerPiece w_k, LayerPiece w_v) {
  return {.kind = ParamsLayout::torch,
          .w_q = w_q,
          .w_k = w_k,
          .w_v = w_v,
          .w_o = {"out_proj.weight", kTransposed},
          .b_q = {"in_proj_bias", false, 0, 3},
          .b_k = {"in_proj_bias", false, 1, 3},
          .b_v = {"in_proj_bias", false, 2, 3},
          .b_o = {"out_proj.bias"},
          .bias_k = {"bias_k"},
          .bias_v = {"bias_v"}};
}

constexpr std::array<LayerLayout, 6> kLayouts = {{
    {.kind = ParamsLayout::attnlab,
     .w_q = {"w_q"},
     .w_k = {"w_k"},
     .w_v = {"w_v"},
     .w_o = {"w_o"},
     .b_q = {"b_q"},
     .b_k = {"b_k"},
     .b_v = {"b_v"},
     .b_o = {"b_o"},
     .q_norm = {"q_norm"},
     .k_norm = {"k_norm"},
     .bias_k = {"bias_k"},
     .bias_v = {"bias_v"}},
    torch({"in_proj_weight", kTransposed, 0, 3}, {"in_proj_weight", kTransposed, 1, 3},
          {"in_proj_weight", kTransposed, 2, 3}),
    // With kdim or vdim the three projections are kept apart.
    torch({"q_proj_weight", kTransposed}, {"k_proj_weight", kTransposed},
          {"v_proj_weight", kTransposed}),
    // Hugging Face transformers, models/bert/modeling_bert.py: encoder.layer.N.
    {.kind = ParamsLayout::bert,
     .w_q = {"attention.self.query.weight", kTransposed},
     .w_k = {"attention.self.key.weight", kTransposed},
     .w_v = {"attention.self.value.weight", kTransposed},
     .w_o = {"attention.output.dense.weight", kTransposed},
     .b_q = {"attention.self.query.bias"},
     .b_k = {"attention.self.key.bias"},
     .b_v = {"attention.self.value.bias"},
     .b_o = {"attention.output.dense.bias"},
     .refused = {"attention.self.distance_embedding.weight"}},
    // models/gpt2/modeling_gpt2.py: h.N. Its Conv1D keeps weights as [in, out].
    {.kind = ParamsLayout::gpt2,
     .w_q = {"attn.c_attn.weight", false, 0, 3},
     .w_k = {"attn.c_attn.weight", false, 1, 3},
     .w_v = {"attn.c_attn.weight", false, 2, 3},
     .w_o = {"attn.c_proj.weight"},
     .b_q = {"attn.c_attn.bias", false, 0, 3},
     .b_k = {"attn.c_attn.bias", false, 1, 3},
     .b_v = {"attn.c_attn.bias", false, 2, 3},
     .b_o = {"attn.c_proj.bias"},
     .note = "GPT-2 attends with --causal"},
    // models/llama/modeling_llama.py: model.layers.N. Models of its kind have biases (Qwen2), or
    // normalise each query and key (models/qwen3/modeling_qwen3.py).
    {.kind = ParamsLayout::llama,
     .w_q = {"self_attn.q_proj.weight", kTransposed},
     .w_k = {"self_attn.k_proj.weight", kTransposed},
     .w_v = {"self_attn.v_proj.weight", kTransposed},
     .w_o = {"self_attn.o_proj.weight", kTransposed},
     .b_q = {"self_attn.q_proj.bias"},
     .b_k = {"self_attn.k_proj.bias"},
     .b_v = {"self_attn.v_proj.bias"},
     .b_o = {"self_attn.o_proj.bias"},
     .q_norm = {"self_attn.q_norm.weight"},
     .k_norm = {"self_attn.k_norm.weight"},
     .note = "Llama attends with --causal and rotates queries and keys: with --rope-theta, the "
             "rope_theta of the model's config.json"},
}};

}  // namespace

std::span<const LayerLayout> layer_layouts() { return kLayouts; }

}  // namespace attnlab
