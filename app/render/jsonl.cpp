#include "render/cells.h"
#include "render/report.h"

namespace attnlab {

std::string jsonl_line(const std::vector<ResultRef>& cells) { return json_object(cells) + "\n"; }

std::string render_jsonl(const Report& report, const std::vector<std::string>& shown) {
  check_format(Format::jsonl, report.results, shown);
  const FlatRows rows = flat_rows(report.results, shown);
  std::string text;
  for (std::size_t i = 0; i < rows.count; ++i) text += jsonl_line(rows.row(i));
  return text;
}

}  // namespace attnlab
