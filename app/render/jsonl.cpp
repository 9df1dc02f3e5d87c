#include "render/cells.h"
#include "render/json_text.h"
#include "render/report.h"

namespace attnlab {

std::string jsonl_line(const std::vector<ResultRef>& cells, std::string_view run) {
  std::string line = json_object(cells);
  if (!run.empty()) {
    line.pop_back();
    line += ", \"run\": " + json_string(run) + "}";
  }
  return line + "\n";
}

std::string interrupted_line(Index rows, std::string_view run) {
  return "{\"interrupted\": true, \"rows\": " + std::to_string(rows) +
         ", \"run\": " + json_string(run) + "}\n";
}

std::string render_jsonl(const Report& report, const std::vector<std::string>& shown) {
  check_format(Format::jsonl, report.results, shown);
  const FlatRows rows = flat_rows(report.results, shown);
  std::string text;
  for (std::size_t i = 0; i < rows.count; ++i) text += jsonl_line(rows.row(i));
  return text;
}

}  // namespace attnlab
