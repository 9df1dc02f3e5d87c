#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/experiments/attention_inputs.h"
#include "attnlab/experiments/mask_options.h"
#include "attnlab/experiments/position_options.h"
#include "attnlab/experiments/run_options.h"
#include "attnlab/experiments/score_options.h"

namespace attnlab {

// Whose semantics a given output of attention follows: those asked for, or a likely mistake's.
struct DiagnoseOptions {
  QueryKeyOptions query_key;
  ValueOptions value;
  TensorSource candidate;
  SizeOptions sizes;
  PositionOptions positions;
  ScoreOptions scores;
  MaskOptions mask;
  std::optional<double> tolerance;
  RunOptions run;

  static constexpr auto fields() {
    using O = DiagnoseOptions;
    return std::tuple(
        group("Inputs", &O::query_key), group("Inputs", &O::value),
        field("candidate", &O::candidate, "the output to be explained, in the form of attend's",
              {.unit = "FILE"}),
        group("Sizes", &O::sizes), group("Positions", &O::positions), group("Scores", &O::scores),
        group("Masks", &O::mask),
        field("tolerance", &O::tolerance,
              "absolute error up to which outputs are equal; unless given 4 times that of attend "
              "in the "
              "narrower dtype of inputs and candidate, or 2 units in the last place of the largest "
              "output where that is more",
              {.range = at_least(0.0)}),
        group("Run", &O::run));
  }
};

struct DiagnoseRow {
  Index rank = 0;
  std::string mistake;
  double max_abs_error = 0, rms_error = 0;
  std::optional<double> relative_norm;
  Index rows_apart = 0;
  bool explains = false;
  bool as_asked = false;
  std::string description;

  static constexpr auto fields() {
    using R = DiagnoseRow;
    return std::tuple(
        field("rank", &R::rank,
              "by root mean square error, those that explain the candidate first"),
        field("mistake", &R::mistake,
              "what was done, or two things; correct is what was asked for"),
        field("max_abs_error", &R::max_abs_error, "max |candidate - attention with the mistake|"),
        field("rms_error", &R::rms_error, "root mean square of that difference"),
        field("relative_norm", &R::relative_norm, "||candidate - it|| / ||it||"),
        field("rows_apart", &R::rows_apart,
              "rows of [batch, heads, n] with an error above the tolerance"),
        field("explains", &R::explains,
              "equal within the tolerance; of 16-bit sums, whose order is unknown: an error of "
              "their size"),
        field("as_asked", &R::as_asked,
              "gives what was asked for on these inputs, which cannot tell the two apart"),
        field("description", &R::description, "the mistake in words"));
  }
};

struct DiagnoseResult {
  std::vector<DiagnoseRow> rows;
  std::string verdict;
  bool equal = false;
  std::vector<std::string> found;
  double tolerance = 0;
  std::optional<std::string> departs_from;
  std::optional<Index> batch, head, row, column, tile;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = DiagnoseResult;
    return std::tuple(
        field("rows", &R::rows, "one row a mistake, and each pair that explains the candidate"),
        field("verdict", &R::verdict, "what was found"),
        field("equal", &R::equal, "the candidate is what was asked for"),
        field("found", &R::found, "the mistakes that together explain it; none where nothing does"),
        field("tolerance", &R::tolerance, "absolute error up to which outputs are equal"),
        field("departs_from", &R::departs_from,
              "what it departs from below: what was asked for where a mistake was found, else the "
              "nearest row"),
        field("batch", &R::batch, "batch entry of the first element apart"),
        field("head", &R::head, "its query head"), field("row", &R::row, "its query"),
        field("column", &R::column, "its column of the output"),
        field("tile", &R::tile,
              "16, 32 ... 256 where no head is apart before a row that is a multiple of it"));
  }
};

// Computes attention as asked for and with every mistake of the table that applies (mistakes.h), in
// float64 by plain loops, and holds the candidate against each; where no single one explains it,
// against pairs. Sums in 16 bits are named by the size of their error, alone or on top of the
// nearest mistake. Throws InputError, also for sizes that would take minutes.
DiagnoseResult diagnose(const DiagnoseOptions& given, const Request& want);

}  // namespace attnlab
