#include "render/columns.h"

#include <algorithm>
#include <cstddef>

namespace attnlab {

RowsRef chosen_columns(const RowsRef& rows, const std::vector<std::string_view>& names) {
  std::vector<std::size_t> places;
  for (const std::string_view name : names) {
    const auto column =
        std::find_if(rows.columns.begin(), rows.columns.end(),
                     [name](const ResultRef& candidate) { return candidate.name == name; });
    places.push_back(static_cast<std::size_t>(column - rows.columns.begin()));
  }
  const auto pick = [places](const std::vector<ResultRef>& cells) {
    std::vector<ResultRef> picked;
    picked.reserve(places.size());
    for (const std::size_t place : places) picked.push_back(cells.at(place));
    return picked;
  };
  RowsRef result;
  result.count = rows.count;
  result.columns = pick(rows.columns);
  result.row = [pick, row = rows.row](std::size_t i) { return pick(row(i)); };
  return result;
}

}  // namespace attnlab
