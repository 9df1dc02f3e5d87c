#include "attnlab/core/error.h"
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

std::string header(const std::vector<ResultRef>& columns) {
  return csv_line(columns, [](const ResultRef& column) { return std::string(column.name); });
}

std::string row(const std::vector<ResultRef>& cells) {
  return csv_line(cells, [](const ResultRef& cell) { return csv_cell(cell.value); });
}

}  // namespace

void check_format(Format format, const std::vector<std::string>& shown) {
  if (shown.empty() || (format != Format::jsonl && format != Format::csv)) return;
  throw InputError("", "format", kChoiceNames<Format>[static_cast<std::size_t>(format)],
                   "it holds rows and scalars only: write " + shown.front() + " with --save " +
                       shown.front() +
                       "=FILE, or leave matrices out with "
                       "--show none");
}

std::string render_csv(const Report& report, const std::vector<std::string>& shown) {
  check_format(Format::csv, shown);
  const RowsRef* rows = rows_of(report.results);
  if (rows == nullptr) {
    const std::vector<ResultRef> scalars = scalars_of(report.results);
    return header(scalars) + row(scalars);
  }
  std::string text = header(rows->columns);
  for (std::size_t i = 0; i < rows->count; ++i) text += row(rows->row(i));
  return text;
}

}  // namespace attnlab
