#include <algorithm>

#include "render/cells.h"
#include "render/heading.h"
#include "render/report.h"
#include "render/text_table.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

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

// Scalars that follow each other, one a line, the values under each other.
std::string scalar_block(const std::vector<ResultRef>& scalars, const Style& style) {
  int width = 0;
  for (const ResultRef& scalar : scalars) width = std::max(width, display_width(scalar.name));
  std::string text;
  for (const ResultRef& scalar : scalars) {
    text += pad_right(scalar.name, width);
    text += "  ";
    text += table_cell(scalar.value, style.digits);
    if (!scalar.unit.empty()) {
      text += ' ';
      text += scalar.unit;
    }
    text += '\n';
  }
  return text;
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
