#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/attention_inputs.h"
#include "attnlab/experiments/gradient_check.h"
#include "attnlab/experiments/mask_options.h"
#include "attnlab/experiments/multihead.h"
#include "attnlab/experiments/position_options.h"
#include "attnlab/experiments/run_options.h"
#include "attnlab/experiments/score_options.h"

namespace attnlab {

// The backward pass of attention against central differences of the forward pass, on given (or
// drawn) Q, K, V, or that of a layer where the options name one.
struct GradcheckOptions {
  QueryKeyOptions query_key;
  ValueOptions value;
  Role role = Role::automatic;
  LayerInputOptions inputs;
  LayerOptions layer;
  SizeOptions sizes;
  PositionOptions positions;
  ScoreOptions scores;
  MaskOptions mask;
  std::optional<double> tolerance;
  RunOptions run;

  GradcheckOptions() { sizes.dtype = Precision::float64; }

  static constexpr auto fields() {
    using O = GradcheckOptions;
    return std::tuple(
        group("Of attention", &O::query_key), group("Of attention", &O::value),
        field("role", &O::role, "of a layer, as in multihead: encoder, decoder or cross"),
        group("Of a layer", &O::inputs), group("Layer", &O::layer), group("Sizes", &O::sizes),
        group("Positions", &O::positions), group("Scores", &O::scores), group("Masks", &O::mask),
        field("tolerance", &O::tolerance,
              "relative error allowed; by the dtype of the backward pass unless given: float64 "
              "1e-8, float32 1e-5, float16 1e-3, bfloat16 1e-2",
              {.range = at_least(0.0)}),
        group("Run", &O::run));
  }
};

struct GradcheckResult {
  std::vector<GradientCheck> rows;
  double tolerance = 0;
  bool passed = true;
  std::optional<LayerTensors> layer;  // to be saved, where that was asked for
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = GradcheckResult;
    return std::tuple(field("rows", &R::rows, "one row a tensor"),
                      field("tolerance", &R::tolerance, "relative error allowed"),
                      field("passed", &R::passed, "every gradient agrees"));
  }
};

// The loss is the output weighted with standard normals drawn from the seed, never its plain sum:
// the weights of a row sum to 1, so that the sum does not change with the scores and would hide a
// wrong Jacobian. The backward pass runs in the dtype, the differences always in float64, at the
// same inputs. With a past, rows k and v are about past and current keys together. A layer has rows
// for its inputs, weights and biases, see check_layer. Throws InputError.
GradcheckResult gradcheck(const GradcheckOptions& options, const Request& want);

}  // namespace attnlab
