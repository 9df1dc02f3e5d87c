#include <algorithm>

#include "attnlab/core/error.h"
#include "render/report.h"

namespace attnlab {

std::vector<std::string> shown_matrices(const std::vector<ResultRef>& columns,
                                        const OutputOptions& output) {
  std::vector<std::string> names;
  for (const ResultRef& column : columns) {
    if (column.is_matrix()) names.emplace_back(column.name);
  }
  const auto asked = [&](std::string_view name) {
    return std::find(output.show.begin(), output.show.end(), name) != output.show.end();
  };
  for (const std::string& name : output.show) {
    if (name == "default" || name == "all" || name == "none") continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string nearest = nearest_name(name, names);
    throw InputError("", "show", name,
                     "need a matrix of this command" +
                         (nearest.empty() ? "" : ", did you mean " + nearest + "?"));
  }
  std::vector<std::string> shown;
  for (const ResultRef& column : columns) {
    if (column.is_matrix() &&
        (asked("all") || asked(column.name) || (asked("default") && column.shown))) {
      shown.emplace_back(column.name);
    }
  }
  return shown;
}

}  // namespace attnlab
