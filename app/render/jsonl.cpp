#include "render/cells.h"
#include "render/report.h"

namespace attnlab {

std::string jsonl_line(const std::vector<ResultRef>& cells) { return json_object(cells) + "\n"; }

std::string render_jsonl(const Report& report, const std::vector<std::string>& shown) {
  check_format(Format::jsonl, shown);
  const RowsRef* rows = rows_of(report.results);
  if (rows == nullptr) return jsonl_line(scalars_of(report.results));
  std::string text;
  for (std::size_t i = 0; i < rows->count; ++i) text += jsonl_line(rows->row(i));
  return text;
}

}  // namespace attnlab
