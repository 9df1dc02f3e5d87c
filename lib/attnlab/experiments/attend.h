#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/attention_case.h"
#include "attnlab/experiments/attention_inputs.h"
#include "attnlab/experiments/attention_matrices.h"
#include "attnlab/experiments/input_gradients.h"
#include "attnlab/experiments/mask_options.h"
#include "attnlab/experiments/position_options.h"
#include "attnlab/experiments/run_options.h"
#include "attnlab/experiments/score_options.h"

namespace attnlab {

// Scaled dot-product attention on given (or drawn) Q, K, V.
struct AttendOptions {
  QueryKeyOptions query_key;
  ValueOptions value;
  SizeOptions sizes;
  PositionOptions positions;
  ScoreOptions scores;
  MaskOptions mask;
  GradientOptions gradients;
  RunOptions run;
  CaseOptions keep;

  static constexpr auto fields() {
    using O = AttendOptions;
    return std::tuple(
        group("Inputs", &O::query_key), group("Inputs", &O::value), group("Sizes", &O::sizes),
        group("Positions", &O::positions), group("Scores", &O::scores), group("Masks", &O::mask),
        group("Gradients", &O::gradients), group("Run", &O::run), group("Output", &O::keep));
  }
};

struct AttendResult {
  std::optional<AnyTensor> q, k, v, rotated_q, rotated_k;
  AttentionMatrices attention;
  std::optional<AnyTensor> output, present_k, present_v;
  InputGradients gradients;
  Index empty_rows = 0;
  std::vector<std::string> notes;
  std::optional<AttentionCase> kept;  // with --save-case

  static constexpr auto fields() {
    using R = AttendResult;
    return std::tuple(
        field("q", &R::q, "queries: what each position seeks", {.shape = "[.., heads, n, d_k]"}),
        field("k", &R::k, "keys: what each position offers to be found by",
              {.shape = "[.., kv_heads, m, d_k]"}),
        field("v", &R::v, "values: what each position carries",
              {.shape = "[.., kv_heads, m, d_v]"}),
        field("rotated_q", &R::rotated_q, "queries turned by their positions",
              {.formula = "rotate(q)", .shape = "[.., heads, n, d_k]"}),
        field("rotated_k", &R::rotated_k,
              "keys turned by theirs: a match now depends on how far they stand apart",
              {.formula = "rotate(k)", .shape = "[.., kv_heads, m, d_k]"}),
        group("", &R::attention),
        field("output", &R::output, "the values, averaged with the weights of each query",
              {.formula = "weights v", .shape = "[.., heads, n, d_v]", .shown = true}),
        field("present_k", &R::present_k, "past and current keys, rotated where keys are",
              {.formula = "concat(past_k, k)", .shape = "[batch, kv_heads, p + m, d_k]"}),
        field("present_v", &R::present_v, "past and current values",
              {.formula = "concat(past_v, v)", .shape = "[batch, kv_heads, p + m, d_v]"}),
        group("", &R::gradients),
        field("empty_rows", &R::empty_rows, "query rows that may attend to no key"));
  }
};

// Throws InputError. `want` names the matrices to keep; present_k and present_v exist for every
// call, equal to K and V without a past; gradients exist with a grad_output. With a save_case all
// are kept.
AttendResult attend(const AttendOptions& options, const Request& want);

}  // namespace attnlab
