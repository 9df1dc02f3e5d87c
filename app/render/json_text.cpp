#include "render/json_text.h"

#include <cmath>

#include "attnlab/io/json.h"
#include "attnlab/io/number_text.h"

namespace attnlab {

std::string json_string(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_json_number(std::string& out, double value) {
  const char* quote = std::isfinite(value) ? "" : "\"";
  out += quote;
  append_number(out, value);
  out += quote;
}

void append_indented(std::string& out, std::string_view json, std::size_t indent) {
  for (;;) {
    const std::size_t end = json.find('\n');
    out += json.substr(0, end);
    if (end == std::string_view::npos) return;
    out += '\n';
    out.append(indent, ' ');
    json.remove_prefix(end + 1);
  }
}

void append_json_tensor(std::string& out, const AnyTensor& tensor, std::size_t indent) {
  std::string lines;
  const auto move_lines = [&](std::string& text) {
    append_indented(out, text, indent);
    text.clear();
  };
  append_tensor_json(lines, tensor, move_lines);
  move_lines(lines);
}

std::string json_line(const AnyTensor& tensor) {
  std::string lines;
  append_tensor_json(lines, tensor, [](std::string&) {});
  std::string line;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != '\n') {
      line += lines[i];
      continue;
    }
    // Line breaks stand before the indentation of an element, which follows a comma or a bracket.
    i = lines.find_first_not_of(' ', i + 1) - 1;
    if (line.back() == ',') line += ' ';
  }
  return line;
}

}  // namespace attnlab
