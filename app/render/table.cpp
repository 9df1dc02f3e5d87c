#include <algorithm>

#include "render/blocks.h"
#include "render/cells.h"
#include "render/report.h"
#include "render/text_table.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

// "weights = softmax(masked_scores)   [2, 5, 5] float32"
std::string matrix_heading(const ResultRef& result, const AnyTensor& matrix) {
  std::string text(result.name);
  if (!result.formula.empty()) text += " = " + std::string(result.formula);
  return text + "   " + shape_text(matrix);
}

std::string matrix_block(const ResultRef& result, const AnyTensor& matrix, const Style& style) {
  return bold(matrix_heading(result, matrix), style.color) + "\n" +
         matrix_text(matrix, result.shape, style);
}

std::string rows_block(const ResultRef& result, const RowsRef& rows, const Style& style) {
  std::vector<TextColumn> columns;
  bool key = true;
  for (const ResultRef& column : rows.columns) {
    key = key && !is_measured(column.value);
    columns.push_back(
        {std::string(column.name), std::string(column.unit), {}, is_numeric(column.value), key});
  }
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::vector<ResultRef> cells = rows.row(i);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      columns[c].cells.push_back(table_cell(cells[c].value, style.digits));
    }
  }
  const std::string title = result.name == "rows" ? "" : bold(result.name, style.color) + "\n";
  return title + text_table(columns, style.width, style.color);
}

}  // namespace

std::string render_table(const Report& report, const std::vector<std::string>& shown,
                         const Style& style) {
  std::vector<std::string> blocks;
  std::vector<ResultRef> scalars;
  const auto flush_scalars = [&] {
    if (!scalars.empty()) blocks.push_back(scalar_block(scalars, style));
    scalars.clear();
  };
  for (const ResultRef& result : report.results) {
    const bool hidden =
        result.is_matrix() && std::find(shown.begin(), shown.end(), result.name) == shown.end();
    if (hidden) continue;
    if (const AnyTensor* matrix = result.matrix()) {
      flush_scalars();
      blocks.push_back(matrix_block(result, *matrix, style));
    } else if (const auto* rows = std::get_if<RowsRef>(&result.value)) {
      flush_scalars();
      blocks.push_back(rows_block(result, *rows, style));
    } else {
      scalars.push_back(result);  // a matrix that was not computed shows as undefined
    }
  }
  flush_scalars();
  std::string text;
  for (const std::string& block : blocks) text += (text.empty() ? "" : "\n") + block;
  return text.empty() ? "\n" : text;
}

}  // namespace attnlab
