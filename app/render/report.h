#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/describe.h"
#include "options/output_options.h"
#include "render/heat_map.h"
#include "render/matrix.h"
#include "render/style.h"

namespace attnlab {

// One run of a command, as the renderers see it.
struct Report {
  std::string_view command;
  std::vector<OptionRef> options;  // effective values; those with echo stand in the JSON
  std::vector<ResultRef> results;
  std::vector<std::string> notes;
};

// The names of the matrices to print: what --show chooses out of `columns`, in their order.
// Throws InputError with the nearest name when one is unknown.
std::vector<std::string> shown_matrices(const std::vector<ResultRef>& columns,
                                        const OutputOptions& output);

// What is wrong with asking for a matrix called `name` where there are `names`.
std::string matrix_rule(std::string_view name, const std::vector<std::string>& names);

// What is wrong, pointing to --save, when `format` is jsonl or csv, which hold rows or scalars
// only, and one of the `shown` matrices is more than one number. To be asked before the work
// starts, of the columns, and by the renderers of the results themselves.
std::optional<std::string> format_conflict(Format format, const std::vector<ResultRef>& results,
                                           const std::vector<std::string>& shown);
// Throws InputError blaming the format for it.
void check_format(Format format, const std::vector<ResultRef>& results,
                  const std::vector<std::string>& shown);

// The report in one of the formats, in whole lines. `shown` are the matrices to print.
// jsonl and csv hold the rows, or the scalars where there are none; check_format holds of them.
std::string render_table(const Report& report, const std::vector<std::string>& shown,
                         const Style& style);
std::string render_json(const Report& report, const std::vector<std::string>& shown);
std::string render_jsonl(const Report& report, const std::vector<std::string>& shown);
std::string render_csv(const Report& report, const std::vector<std::string>& shown);

// One line of jsonl, for rows that are written as soon as they are known. `run` identifies the run,
// so that another may go on from its rows; empty: the row says nothing of it.
std::string jsonl_line(const std::vector<ResultRef>& cells, std::string_view run = {});
// The last line where a run was stopped after `rows` rows.
std::string interrupted_line(Index rows, std::string_view run);

// The calculation step by step (--trace): every matrix that was computed, in order, under its
// title, formula and shape.
std::string render_trace(const Report& report, const Style& style);

}  // namespace attnlab
