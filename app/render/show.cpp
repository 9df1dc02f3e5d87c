#include <fmt/format.h>

#include <algorithm>

#include "attnlab/core/error.h"
#include "render/blocks.h"
#include "render/report.h"

namespace attnlab {

std::string matrix_rule(std::string_view name, const std::vector<std::string>& names) {
  if (names.empty()) return "this command has no matrices";
  const std::string nearest = nearest_name(name, names);
  if (!nearest.empty()) return "need a matrix of this command, did you mean " + nearest + "?";
  return fmt::format("need one of {}", fmt::join(names, ", "));
}

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
    throw InputError("", "show", name, matrix_rule(name, names));
  }
  if (asked("none") && output.show.size() > 1) {
    throw InputError("", "show", fmt::format("{}", fmt::join(output.show, ",")),
                     "none stands alone: it leaves out all matrices");
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

std::optional<std::string> format_conflict(Format format, const std::vector<ResultRef>& results,
                                           const std::vector<std::string>& shown) {
  if (format != Format::jsonl && format != Format::csv) return std::nullopt;
  for (const ResultRef& result : results) {
    if (std::find(shown.begin(), shown.end(), result.name) == shown.end()) continue;
    // Before the run only the declaration tells: "[..]" is one number where the input is one row.
    const bool number = result.matrix() == nullptr ? result.shape == "[..]" : is_scalar(result);
    if (number) continue;
    const std::string name(result.name);
    return "it holds rows and scalars only: write " + name + " with --save " + name +
           "=FILE, or leave matrices out with --show none";
  }
  return std::nullopt;
}

void check_format(Format format, const std::vector<ResultRef>& results,
                  const std::vector<std::string>& shown) {
  if (const auto rule = format_conflict(format, results, shown)) {
    throw InputError("", "format", kChoiceNames<Format>[static_cast<std::size_t>(format)], *rule);
  }
}

}  // namespace attnlab
