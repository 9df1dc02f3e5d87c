#include <algorithm>
#include <optional>

#include "attnlab/experiments/rounding.h"
#include "attnlab/io/json.h"
#include "options/echo.h"
#include "render/cells.h"
#include "render/json_text.h"
#include "render/report.h"

namespace attnlab {
namespace {

std::string notes_json(const std::vector<std::string>& notes) {
  if (notes.empty()) return "[]";
  std::string text = "[";
  for (std::size_t i = 0; i < notes.size(); ++i) {
    text += (i == 0 ? "\n    " : ",\n    ") + json_string(notes[i]);
  }
  return text + "\n  ]";
}

void append_rows(const RowsRef& rows, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < rows.count; ++i) {
    out += (i == 0 ? "\n      " : ",\n      ") + json_object(rows.row(i));
  }
  out += rows.count == 0 ? "]" : "\n    ]";
}

void append_result(const ResultRef& result, std::string& out) {
  if (const AnyTensor* matrix = result.matrix()) {
    append_json_tensor(out, *matrix, 4);
  } else if (const auto* rows = std::get_if<RowsRef>(&result.value); rows && !rows->is_object) {
    append_rows(*rows, out);
  } else {
    out += json_cell(result.value);
  }
}

// What the matrices were computed in, shown or not: their numbers do not tell. Of several dtypes
// the narrowest, which says how exact the rest can be; empty without matrices.
std::string dtype_json(const std::vector<ResultRef>& results) {
  std::optional<DType> dtype;
  for (const ResultRef& result : results) {
    const AnyTensor* matrix = result.matrix();
    if (matrix == nullptr || !is_floating(matrix->dtype())) continue;
    dtype = dtype ? narrower(*dtype, matrix->dtype()) : matrix->dtype();
  }
  return dtype ? ",\n  \"dtype\": " + json_string(dtype_name(*dtype)) : "";
}

}  // namespace

std::string render_json(const Report& report, const std::vector<std::string>& shown) {
  std::string out = "{\n  \"command\": " + json_string(report.command) +
                    ",\n  \"version\": " + json_string(ATTNLAB_VERSION) + ",\n  \"options\": ";
  append_indented(out, dump_json(options_to_json(report.options)), 2);
  out += ",\n  \"notes\": " + notes_json(report.notes) + dtype_json(report.results) +
         ",\n  \"result\": {";
  const char* separator = "";
  for (const ResultRef& result : report.results) {
    const bool hidden =
        result.is_matrix() && std::find(shown.begin(), shown.end(), result.name) == shown.end();
    if (hidden || result.absent()) continue;
    out += separator;
    out += "\n    " + json_string(result.name) + ": ";
    append_result(result, out);
    separator = ",";
  }
  out += *separator == 0 ? "}\n}\n" : "\n  }\n}\n";
  return out;
}

}  // namespace attnlab
