#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace attnlab {

// A value of a row: undefined (null), a truth, a number, a text or a list of numbers. The texts
// NaN, Infinity and -Infinity are the numbers.
using RowCell = std::variant<std::monostate, bool, double, std::string, std::vector<double>>;

struct RowLine {
  std::string source;  // "run.jsonl: line 3"
  std::map<std::string, RowCell, std::less<>> cells;
};

// The rows of a .jsonl file, one object a line. A last line without its newline was being written
// when its run died, and is left out; so is a line that marks an interruption. Throws InputError
// for anything else that is no row.
std::vector<RowLine> read_row_file(const std::string& path, std::string_view field);

}  // namespace attnlab
