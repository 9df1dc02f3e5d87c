#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/error.h"
#include "attnlab/core/watch.h"
#include "attnlab/io/row_file.h"

namespace attnlab {
namespace detail {

template <class T>
bool set_cell(const RowCell& cell, T& member) {
  if constexpr (std::is_same_v<T, Index>) {
    const auto* number = std::get_if<double>(&cell);
    if (number == nullptr) return false;
    // Outside, the conversion would be undefined.
    if (!(*number > -0x1p53 && *number < 0x1p53)) return false;
    member = static_cast<Index>(*number);
    return static_cast<double>(member) == *number;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double> ||
                       std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<double>>) {
    const auto* value = std::get_if<T>(&cell);
    if (value != nullptr) member = *value;
    return value != nullptr;
  } else {
    if (std::holds_alternative<std::monostate>(cell)) return true;
    return set_cell(cell, member.emplace());
  }
}

template <class S>
void set_row(const RowLine& line, S& row);

template <class S, class T>
void set_field(const RowLine& line, S& row, const Field<S, T>& f) {
  const auto cell = line.cells.find(f.name);
  if (cell == line.cells.end() || !set_cell(cell->second, row.*f.member)) {
    throw InputError(line.source, f.name, "", "is no value of a row of this command");
  }
}
template <class S, class T>
void set_field(const RowLine& line, S& row, const Group<S, T>& g) {
  set_row(line, row.*g.member);
}

template <class S>
void set_row(const RowLine& line, S& row) {
  std::apply([&](const auto&... f) { (set_field(line, row, f), ...); }, S::fields());
}

}  // namespace detail

// The rows of an earlier run of the same options, to go on from. Throws InputError when there is a
// row of another run among them, or more than `most`.
template <class Row>
std::vector<Row> rows_done(const std::string& path, const Watch& watch, Index most) {
  std::vector<Row> rows;
  for (const RowLine& line : read_row_file(path, "resume")) {
    const auto run = line.cells.find("run");
    if (!watch.run.empty() && (run == line.cells.end() || run->second != RowCell(watch.run))) {
      throw InputError(line.source, "run", "",
                       "is not of this run: the options that make the result must be the same");
    }
    if (std::ssize(rows) == most) throw InputError(line.source, "", "", "this run has fewer rows");
    detail::set_row(line, rows.emplace_back());
  }
  return rows;
}

}  // namespace attnlab
