#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/describe.h"
#include "options/output_options.h"

namespace attnlab {

// One run of a command, as the renderers see it.
struct Report {
  std::string_view command;
  std::vector<OptionRef> options;  // effective values; those with echo stand in the JSON
  std::vector<ResultRef> results;
  std::vector<std::string> notes;
};

// How text for people looks.
struct Style {
  int width = 80;                                    // columns of the terminal
  int digits = 4;                                    // significant digits
  bool color = false;                                // ANSI escapes allowed
  std::vector<std::string> row_names, column_names;  // of matrices, from --tokens; may be empty
};

// The names of the matrices to print: what --show chooses out of `columns`, in their order.
// Throws InputError with the nearest name when one is unknown.
std::vector<std::string> shown_matrices(const std::vector<ResultRef>& columns,
                                        const OutputOptions& output);

// The report in one of the formats, ending with a newline. `shown` are the matrices to print.
// jsonl and csv hold rows or scalars only: with a matrix to show they throw InputError pointing to
// --save.
std::string render_table(const Report& report, const std::vector<std::string>& shown,
                         const Style& style);
std::string render_json(const Report& report, const std::vector<std::string>& shown);
std::string render_jsonl(const Report& report, const std::vector<std::string>& shown);
std::string render_csv(const Report& report, const std::vector<std::string>& shown);

// The calculation step by step (--trace): every matrix that was computed, in order, under its
// title, formula and shape.
std::string render_trace(const Report& report, const Style& style);

// One matrix as text: aligned columns, big ones elided in the middle as NumPy does.
std::string matrix_text(const AnyTensor& tensor, const Style& style);

// A matrix [n, m] as blocks of shade, light to dark, with its minimum and maximum beside it; rows
// and columns named where the style has names. NaN has a mark of its own.
std::string heat_map(const AnyTensor& matrix, const Style& style);

}  // namespace attnlab
