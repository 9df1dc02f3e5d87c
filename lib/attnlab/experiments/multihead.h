#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "attnlab/attention/multi_head.h"
#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/attention_matrices.h"
#include "attnlab/experiments/head_layout.h"
#include "attnlab/experiments/layer_gradients.h"
#include "attnlab/experiments/layer_options.h"
#include "attnlab/experiments/mask_options.h"
#include "attnlab/experiments/past_options.h"
#include "attnlab/experiments/position_options.h"
#include "attnlab/experiments/run_options.h"
#include "attnlab/experiments/score_options.h"

namespace attnlab {

// The three uses of multi-head attention in the Transformer (Vaswani et al., 2017, section 3.2.3).
// auto is encoder, or cross where there is a memory.
enum class Role { automatic, encoder, decoder, cross };
template <>
inline constexpr std::array<std::string_view, 4> kChoiceNames<Role> = {"auto", "encoder", "decoder",
                                                                       "cross"};

// A multi-head attention layer with its projections.
struct MultiheadOptions {
  Role role = Role::automatic;
  LayerInputOptions inputs;
  PastOptions past;
  LayerOptions layer;
  SizeOptions sizes;
  PositionOptions positions;
  ScoreOptions scores;
  MaskOptions mask;
  LayerGradientOptions gradients;
  RunOptions run;

  static constexpr auto fields() {
    using O = MultiheadOptions;
    return std::tuple(
        field("role", &O::role,
              "encoder: x attends to itself; decoder: the same, causal; cross: x attends to the "
              "memory, or to the past alone where there is no memory; auto is encoder, or cross "
              "with a memory"),
        group("Inputs", &O::inputs), group("Past", &O::past), group("Layer", &O::layer),
        group("Sizes", &O::sizes), group("Positions", &O::positions), group("Scores", &O::scores),
        group("Masks", &O::mask), group("Gradients", &O::gradients), group("Run", &O::run));
  }
};

// How the layer was applied.
struct MultiheadCall {
  Mask mask;
  std::optional<PastTensors> past;
  AttentionSettings settings;
  Index kv_heads = 1;
  std::optional<double> rope_theta;
  double qk_norm_eps = kDefaultNormEps;
  bool add_zero_attn = false;
  HeadLayout layout;
};

struct MultiheadResult {
  std::optional<AnyTensor> x, memory, query, key, value;
  std::optional<AnyTensor> w_q, b_q, w_k, b_k, w_v, b_v, q, k, v;
  std::optional<AnyTensor> q_norm, k_norm, normed_q, normed_k, rotated_q, rotated_k;
  std::optional<AnyTensor> present_k, present_v, bias_k, bias_v;
  AttentionMatrices attention;
  std::optional<AnyTensor> heads, concat, w_o, b_o, output;
  LayerGradients gradients;
  Index empty_rows = 0;
  std::optional<LayerTensors> layer;  // to be saved, where that was asked for
  std::optional<MultiheadCall> call;  // for who applies the layer again
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = MultiheadResult;
    return std::tuple(
        field("x", &R::x, "one vector for each position", {.shape = "[.., n, d_model]"}),
        field("memory", &R::memory, "the sequence that x attends to",
              {.shape = "[.., m, d_model]"}),
        field("query", &R::query, "where the queries come from", {.shape = "[.., n, d_query]"}),
        field("key", &R::key, "where the keys come from", {.shape = "[.., m, d_key]"}),
        field("value", &R::value, "where the values come from", {.shape = "[.., m, d_value]"}),
        field("w_q", &R::w_q, "query projection", {.shape = "[d_query, heads d_k]"}),
        field("b_q", &R::b_q, "query bias", {.shape = "[heads d_k]"}),
        field("w_k", &R::w_k, "key projection", {.shape = "[d_key, kv_heads d_k]"}),
        field("b_k", &R::b_k, "key bias", {.shape = "[kv_heads d_k]"}),
        field("w_v", &R::w_v, "value projection", {.shape = "[d_value, kv_heads d_v]"}),
        field("b_v", &R::b_v, "value bias", {.shape = "[kv_heads d_v]"}),
        field("q", &R::q, "queries: what each position seeks",
              {.formula = "split(query w_q + b_q)", .shape = "[.., heads, n, d_k]"}),
        field("k", &R::k, "keys: what each position offers to be found by",
              {.formula = "split(key w_k + b_k)", .shape = "[.., kv_heads, m, d_k]"}),
        field("v", &R::v, "values: what each position carries",
              {.formula = "split(value w_v + b_v)", .shape = "[.., kv_heads, m, d_v]"}),
        field("q_norm", &R::q_norm, "weights of the norm of queries", {.shape = "[d_k]"}),
        field("k_norm", &R::k_norm, "weights of the norm of keys", {.shape = "[d_k]"}),
        field("normed_q", &R::normed_q, "queries over their root mean square, weighted",
              {.formula = "q / rms(q) * q_norm", .shape = "[.., heads, n, d_k]"}),
        field("normed_k", &R::normed_k, "keys over their root mean square, weighted",
              {.formula = "k / rms(k) * k_norm", .shape = "[.., kv_heads, m, d_k]"}),
        field("rotated_q", &R::rotated_q, "queries turned by their positions",
              {.formula = "rotate(normed_q)", .shape = "[.., heads, n, d_k]"}),
        field("rotated_k", &R::rotated_k,
              "keys turned by theirs: a match now depends on how far they stand apart",
              {.formula = "rotate(normed_k)", .shape = "[.., kv_heads, m, d_k]"}),
        field("present_k", &R::present_k,
              "past and current keys, rotated where keys are: the past of the next step",
              {.formula = "concat(past_k, k)", .shape = "[batch, kv_heads, p + m, d_k]"}),
        field("present_v", &R::present_v, "past and current values: the past of the next step",
              {.formula = "concat(past_v, v)", .shape = "[batch, kv_heads, p + m, d_v]"}),
        field("bias_k", &R::bias_k,
              "a key of the layer's own behind all others, which every query sees",
              {.shape = "[kv_heads d_k]"}),
        field("bias_v", &R::bias_v, "the value of that key", {.shape = "[kv_heads d_v]"}),
        group("", &R::attention, "weights"),
        field("heads", &R::heads, "what each head found: its values, averaged with its weights",
              {.formula = "weights v", .shape = "[.., heads, n, d_v]"}),
        field("concat", &R::concat, "the heads side by side",
              {.formula = "concat(head_1, ..., head_h)", .shape = "[.., n, heads d_v]"}),
        field("w_o", &R::w_o, "output projection", {.shape = "[heads d_v, d_output]"}),
        field("b_o", &R::b_o, "output bias", {.shape = "[d_output]"}),
        field("output", &R::output, "the heads' findings, mixed",
              {.formula = "concat w_o + b_o", .shape = "[.., n, d_output]", .shown = true}),
        group("", &R::gradients),
        field("empty_rows", &R::empty_rows,
              "query rows, over all heads, that may attend to no key"));
  }
};

// Throws InputError. `want` names the matrices to keep; present_k and present_v exist for every
// call, equal to K and V without a past; gradients exist with a grad_output.
MultiheadResult multihead(const MultiheadOptions& options, const Request& want);

}  // namespace attnlab
