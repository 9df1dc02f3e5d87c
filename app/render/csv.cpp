#include "render/cells.h"
#include "render/report.h"

namespace attnlab {
namespace {

template <class Text>
std::string csv_line(const std::vector<ResultRef>& cells, Text&& text) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    line += text(cells[i]);
  }
  // A line with nothing on it would be skipped by readers.
  return (line.empty() ? "\"\"" : line) + "\n";
}

}  // namespace

std::string render_csv(const Report& report, const std::vector<std::string>& shown) {
  check_format(Format::csv, report.results, shown);
  const FlatRows rows = flat_rows(report.results, shown);
  std::string text =
      csv_line(rows.columns, [](const ResultRef& column) { return std::string(column.name); });
  for (std::size_t i = 0; i < rows.count; ++i) {
    text += csv_line(rows.row(i), [](const ResultRef& cell) { return csv_cell(cell.value); });
  }
  return text;
}

}  // namespace attnlab
