#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/precision.h"
#include "attnlab/experiments/run_options.h"

namespace attnlab {

// The three uses of multi-head attention in the Transformer side by side.
struct RolesOptions {
  TensorSource source, target;
  std::optional<Index> n_source, n_target, d_model;
  Index heads = 2;
  Precision dtype = Precision::automatic;
  RunOptions run;

  static constexpr auto fields() {
    using O = RolesOptions;
    return std::tuple(
        field("source", &O::source, "the sequence to encode, [n, d_model] or [batch, n, d_model]",
              {.unit = "FILE"}),
        field("target", &O::target, "the sequence to decode, as wide as the source",
              {.unit = "FILE"}),
        field("n_source", &O::n_source, "positions of the source to draw (5 unless given)",
              {.range = at_least<Index>(1)}),
        field("n_target", &O::n_target, "positions of the target to draw (4 unless given)",
              {.range = at_least<Index>(1)}),
        field("d_model", &O::d_model, "width to draw (8 unless given)",
              {.range = at_least<Index>(1)}),
        field("heads", &O::heads, "heads of each of the three layers",
              {.range = at_least<Index>(1)}),
        field("dtype", &O::dtype,
              "precision; auto follows the files, text is float64, drawn tensors are float32"),
        group("Run", &O::run));
  }
};

struct RolesResult {
  std::optional<AnyTensor> source, target;
  std::optional<AnyTensor> encoder_weights, encoder_output;
  std::optional<AnyTensor> decoder_weights, decoder_output;
  std::optional<AnyTensor> cross_weights, cross_output;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = RolesResult;
    return std::tuple(
        field("source", &R::source, "the sequence to encode", {.shape = "[.., n_source, d_model]"}),
        field("target", &R::target, "the sequence to decode", {.shape = "[.., n_target, d_model]"}),
        field("encoder_weights", &R::encoder_weights,
              "encoder self-attention: Q, K and V from the source; every position sees all",
              {.shape = "[.., heads, n_source, n_source]", .shown = true}),
        field(
            "encoder_output", &R::encoder_output, "what the encoder hands on",
            {.formula = "multi_head(source, source, source)", .shape = "[.., n_source, d_model]"}),
        field("decoder_weights", &R::decoder_weights,
              "masked decoder self-attention: Q, K and V from the target; position i sees j <= i",
              {.shape = "[.., heads, n_target, n_target]", .shown = true}),
        field("decoder_output", &R::decoder_output, "where the queries of the next step come from",
              {.formula = "multi_head(target, target, target), causal",
               .shape = "[.., n_target, d_model]"}),
        field("cross_weights", &R::cross_weights,
              "encoder-decoder attention: Q from the decoder, K and V from the encoder's output",
              {.shape = "[.., heads, n_target, n_source]", .shown = true}),
        field("cross_output", &R::cross_output, "the target, having read the source",
              {.formula = "multi_head(decoder_output, encoder_output, encoder_output)",
               .shape = "[.., n_target, d_model]"}));
  }
};

// Encoder self-attention of the source, masked self-attention of the target, and attention from the
// one's output to the other's, chained as in a Transformer of one layer whose residual connections,
// layer normalisation and feed-forward parts are left out (Vaswani et al., 2017, section 3.2.3 and
// figure 1). The three layers are drawn from the seed. Throws InputError.
RolesResult roles(const RolesOptions& options, const Request& want);

}  // namespace attnlab
