#include "render/blocks.h"

#include <algorithm>

#include "render/cells.h"
#include "render/elide.h"
#include "render/text_table.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

constexpr Index kMostRows = 48;  // as of a heat map
constexpr std::string_view kDots = "...";

}  // namespace

std::string shape_text(const AnyTensor& matrix) {
  const std::string dtype(dtype_name(matrix.dtype()));
  return matrix.shape().rank() == 0 ? dtype : matrix.shape().str() + " " + dtype;
}

bool is_scalar(const ResultRef& result) {
  if (result.is_matrix()) {
    return result.matrix() == nullptr || result.matrix()->shape().rank() == 0;
  }
  return !std::holds_alternative<RowsRef>(result.value);
}

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

std::string rows_block(const ResultRef& result, const RowsRef& rows, const Style& style) {
  std::vector<TextColumn> columns;
  bool key = true;
  for (const ResultRef& column : rows.columns) {
    key = key && !is_measured(column.value);
    columns.push_back(
        {std::string(column.name), std::string(column.unit), {}, is_numeric(column.value), key});
  }
  for (const Index i : elided(static_cast<Index>(rows.count), kMostRows)) {
    if (i == kGap) {
      for (TextColumn& column : columns) column.cells.emplace_back(kDots);
      continue;
    }
    const std::vector<ResultRef> cells = rows.row(static_cast<std::size_t>(i));
    for (std::size_t c = 0; c < cells.size(); ++c) {
      columns[c].cells.push_back(table_cell(cells[c].value, style.digits));
    }
  }
  // What tells rows apart and is undefined in all of them (the head where there is one) does not;
  // neither do lists that are all empty tell anything.
  std::erase_if(columns, [](const TextColumn& column) {
    const std::string_view nothing = column.key ? "-" : "[]";
    return !column.cells.empty() &&
           std::all_of(column.cells.begin(), column.cells.end(),
                       [&](const std::string& cell) { return cell == nothing || cell == kDots; });
  });
  const std::string title = result.name == "rows" ? "" : bold(result.name, style.color) + "\n";
  return title + text_table(columns, style.width, style.color);
}

}  // namespace attnlab
