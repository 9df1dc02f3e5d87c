#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/precision.h"
#include "attnlab/experiments/run_options.h"

namespace attnlab {

// stable subtracts the row maximum first; naive is the formula taken literally, to see it overflow.
enum class SoftmaxMethod { stable, naive };
template <>
inline constexpr std::array<std::string_view, 2> kChoiceNames<SoftmaxMethod> = {"stable", "naive"};

// The softmax of numbers or of the rows (last axis) of a tensor: exactly one of the two is given.
struct SoftmaxOptions {
  std::vector<double> values;
  TensorSource x;
  double temperature = 1;
  std::vector<SoftmaxMethod> method = {SoftmaxMethod::stable};
  bool jacobian = false;
  Precision dtype = Precision::automatic;
  RunOptions run;

  static constexpr auto fields() {
    using O = SoftmaxOptions;
    return std::tuple(
        field("values", &O::values, "one row of numbers, -inf and nan among them",
              {.unit = "NUMBER", .positional = true, .non_finite = true}),
        field("x", &O::x, "rows of numbers along the last axis instead, of rank 1 to 4",
              {.unit = "FILE", .list_text = true}),
        field("temperature", &O::temperature, "softmax(x / T)", {.unit = "T", .range = above(0.0)}),
        field("method", &O::method,
              "stable subtracts the row maximum first, naive does not and overflows; both give "
              "rows side by side"),
        field("jacobian", &O::jacobian, "compute the Jacobian s_i (delta_ij - s_j)"),
        field("dtype", &O::dtype, "dtype of the computation; auto is that of x, float64 for text"),
        group("Run", &O::run));
  }
};

// One row of x by one method: the weights and what describes them, as in SoftmaxResult.
struct SoftmaxMethodRow {
  std::string method;
  Index row = 0;
  std::vector<double> softmax;
  double sum = 0;
  double entropy = 0, trace = 0, frobenius = 0, lambda_max = 0;
  Index non_finite = 0;

  static constexpr auto fields() {
    using R = SoftmaxMethodRow;
    return std::tuple(field("method", &R::method, "stable or naive"),
                      field("row", &R::row, "row of x, counted from 0"),
                      field("softmax", &R::softmax, "the weights"),
                      field("sum", &R::sum, "their sum"),
                      field("entropy", &R::entropy, "-sum s ln s", {.unit = "nats"}),
                      field("trace", &R::trace, "of the Jacobian, 1 - sum s^2"),
                      field("frobenius", &R::frobenius, "Frobenius norm of the Jacobian"),
                      field("lambda_max", &R::lambda_max, "largest eigenvalue of the Jacobian"),
                      field("non_finite", &R::non_finite, "weights that are NaN or infinite"));
  }
};

// The matrices are in the dtype of the computation, the numbers a row in float64 and of one axis
// less than x: a single number for a single row. With several methods there are rows and no
// matrices.
struct SoftmaxResult {
  std::optional<AnyTensor> scaled, exponentials, sums, softmax, log_softmax;
  std::optional<AnyTensor> jacobian_diagonal, jacobian_off_diagonal, jacobian;
  std::optional<AnyTensor> entropy, trace, frobenius, lambda_max;
  std::optional<double> finite_difference_error;
  std::vector<SoftmaxMethodRow> rows;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = SoftmaxResult;
    return std::tuple(
        field("scaled", &R::scaled, "the logits less their maximum, at the temperature",
              {.formula = "(x - max x) / T; naive: x / T", .shape = "[.., n]"}),
        field("exponentials", &R::exponentials, "positive, and at most 1 unless naive",
              {.formula = "exp(scaled)", .shape = "[.., n]"}),
        field("sums", &R::sums, "what they are divided by",
              {.formula = "sum_j exponentials_j", .shape = "[..]"}),
        field("softmax", &R::softmax, "positive weights with the sum 1",
              {.formula = "exponentials / sums", .shape = "[.., n]", .shown = true}),
        field("log_softmax", &R::log_softmax, "their logarithms, none of them rounded to 0",
              {.formula = "scaled - ln sums", .shape = "[.., n]"}),
        field("jacobian_diagonal", &R::jacobian_diagonal,
              "d s_i / d z_i, case i = j: how a weight answers its own logit, z = x / T",
              {.formula = "s_i (1 - s_i)", .shape = "[.., n]"}),
        field("jacobian_off_diagonal", &R::jacobian_off_diagonal,
              "d s_i / d z_j, case i != j: how a weight answers another logit (0 on the diagonal)",
              {.formula = "-s_i s_j", .shape = "[.., n, n]"}),
        field("jacobian", &R::jacobian, "d s_i / d z_j, both cases in one, z = x / T",
              {.formula = "s_i (delta_ij - s_j)", .shape = "[.., n, n]"}),
        field("entropy", &R::entropy, "how far the weights are spread",
              {.unit = "nats", .formula = "-sum s_i ln s_i", .shape = "[..]", .shown = true}),
        field("trace", &R::trace, "trace of the Jacobian",
              {.formula = "1 - sum s_i^2", .shape = "[..]", .shown = true}),
        field("frobenius", &R::frobenius, "Frobenius norm of the Jacobian",
              {.formula = "sqrt(sum_ij J_ij^2)", .shape = "[..]", .shown = true}),
        field("lambda_max", &R::lambda_max, "largest eigenvalue of the Jacobian, at most 1/2",
              {.shape = "[..]", .shown = true}),
        field("finite_difference_error", &R::finite_difference_error,
              "largest difference between the Jacobian and central differences"),
        field("rows", &R::rows, "one a method and row of x, when there are several methods"));
  }
};

// `want` names the matrices to keep; those of one number a row are always there, the Jacobian also
// when the options ask for it. Throws InputError.
SoftmaxResult softmax(const SoftmaxOptions& options, const Request& want);

}  // namespace attnlab
