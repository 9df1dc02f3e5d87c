#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/attention_inputs.h"
#include "attnlab/experiments/multihead.h"

namespace attnlab {

// Weight matrices to look at: given, or computed as attend and multihead do.
struct WeightsOptions {
  TensorSource weights;
  std::optional<Index> head;
  bool average = false;
  std::optional<Index> top;
  bool projections = false;
  QueryKeyOptions query_key;
  Role role = Role::automatic;
  LayerInputOptions inputs;
  LayerOptions layer;
  SizeOptions sizes;
  PositionOptions positions;
  ScoreOptions scores;
  MaskOptions mask;
  RunOptions run;

  static constexpr auto fields() {
    using O = WeightsOptions;
    return std::tuple(
        field("weights", &O::weights,
              "a matrix [n, m] or [.., heads, n, m]; rows need not sum to 1",
              {.unit = "FILE", .positional = true}),
        field("head", &O::head, "this head only, counted from 0", {.range = at_least<Index>(0)}),
        field("average", &O::average, "the mean over the heads"),
        field("top", &O::top, "name the K keys of largest weight in each row",
              {.unit = "K", .range = at_least<Index>(1)}),
        field("projections", &O::projections, "show W_q W_k W_v W_o of the layer instead"),
        group("Computed as in attend", &O::query_key),
        field("role", &O::role, "computed as in multihead: encoder, decoder or cross"),
        group("Computed as in multihead", &O::inputs), group("Layer", &O::layer),
        group("Sizes", &O::sizes), group("Positions", &O::positions), group("Scores", &O::scores),
        group("Masks", &O::mask), group("Run", &O::run));
  }
};

// What one row of weights looks like. Undefined where a row holds negative or non-finite values, or
// sums to 0.
struct WeightsRow {
  std::optional<Index> batch, head;
  Index row = 0;
  double sum = 0;
  double max = 0;
  std::optional<double> entropy, effective_keys;
  std::vector<Index> top_keys;
  std::vector<double> top_weights;

  static constexpr auto fields() {
    using R = WeightsRow;
    return std::tuple(
        field("batch", &R::batch, "batch entry"), field("head", &R::head, "head"),
        field("row", &R::row, "query"), field("sum", &R::sum, "sum of the row"),
        field("max", &R::max, "largest weight"),
        field("entropy", &R::entropy, "-sum p ln p, p the row over its sum", {.unit = "nats"}),
        field("effective_keys", &R::effective_keys, "1 / sum p^2: as many keys, evenly weighted"),
        field("top_keys", &R::top_keys, "keys of largest weight, largest first"),
        field("top_weights", &R::top_weights, "their weights"));
  }
};

struct WeightsResult {
  std::optional<AnyTensor> weights, w_q, w_k, w_v, w_o;
  std::vector<WeightsRow> rows;
  std::optional<LayerTensors> layer;  // to be saved, where that was asked for
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = WeightsResult;
    return std::tuple(
        field("weights", &R::weights, "how much of each value a query takes",
              {.shape = "[.., heads, n, m]", .shown = true}),
        field("w_q", &R::w_q, "query projection", {.shape = "[d_query, heads d_k]", .shown = true}),
        field("w_k", &R::w_k, "key projection", {.shape = "[d_key, kv_heads d_k]", .shown = true}),
        field("w_v", &R::w_v, "value projection",
              {.shape = "[d_value, kv_heads d_v]", .shown = true}),
        field("w_o", &R::w_o, "output projection",
              {.shape = "[heads d_v, d_output]", .shown = true}),
        field("rows", &R::rows, "what each row looks like"));
  }
};

// Throws InputError.
WeightsResult weights(const WeightsOptions& options, const Request& want);

}  // namespace attnlab
