#include "attnlab/io/row_file.h"

#include <fmt/format.h>

#include "attnlab/core/dtype.h"
#include "attnlab/core/error.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/json.h"

namespace attnlab {
namespace {

bool is_number(const Json& value) {
  return value.is_number() || value == "NaN" || value == "Infinity" || value == "-Infinity";
}

RowCell cell_of(const Json& value, const std::string& source, const std::string& name) {
  if (value.is_null()) return std::monostate{};
  if (value.is_boolean()) return value.get<bool>();
  if (is_number(value)) return tensor_from_json(value, source, name).at(0);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) {
    throw InputError(source, name, value.dump(-1, ' ', false, Json::error_handler_t::replace),
                     "need a number, a text, null or a list of numbers");
  }
  std::vector<double> list;
  for (const Json& item : value) {
    if (!is_number(item)) throw InputError(source, name, "", "need a list of numbers");
    list.push_back(tensor_from_json(item, source, name).at(0));
  }
  return list;
}

}  // namespace

std::vector<RowLine> read_row_file(const std::string& path, std::string_view field) {
  const std::string text = read_file(path, field);
  std::vector<RowLine> rows;
  std::size_t begin = 0;
  for (Index line = 1;; ++line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string_view content = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::string source = fmt::format("{}: line {}", path, line);
    const Json json = parse_json(content, source);
    if (!json.is_object()) throw InputError(source, "", "", "need one object, a row of a result");
    if (json.contains("interrupted")) continue;
    RowLine& row = rows.emplace_back();
    row.source = source;
    for (const auto& [name, value] : json.items()) row.cells[name] = cell_of(value, source, name);
  }
  return rows;
}

}  // namespace attnlab
