#include "render/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "options/wrapped.h"
#include "render/blocks.h"
#include "render/columns.h"
#include "render/text_table.h"

namespace attnlab {
namespace {

constexpr Index kMostBars = 12;
constexpr Index kMostColumns = 7;  // as many as fit beside the names
constexpr Index kBarWidth = 40;

std::string power_text(Index exponent) { return fmt::format("1e{:+03d}", exponent); }

// Counts of errors from the smallest to the largest, each with its name.
using Counts = std::vector<std::pair<std::string, Index>>;

// The exponents of the largest errors of all rows, `most` of them at most.
struct DecadeRange {
  Index first = 0, last = -1;
  bool any_below = false;

  DecadeRange(const std::vector<CompareRow>& rows, Index most) {
    bool any = false;
    Index lowest = 0;
    for (const CompareRow& row : rows) {
      if (row.decades.empty()) continue;
      lowest = any ? std::min(lowest, row.decades.front()) : row.decades.front();
      last = any ? std::max(last, row.decades.back()) : row.decades.back();
      any = true;
    }
    if (!any) return;
    first = std::max(lowest, last - most + 1);
    any_below = lowest < first;
  }
  bool empty() const { return first > last; }
};

Counts counts_of(const CompareRow& row, const DecadeRange& range) {
  Counts counts = {{"0", row.exact}};
  if (range.any_below) counts.emplace_back("below", 0);
  const std::size_t start = counts.size();
  for (Index decade = range.first; decade <= range.last; ++decade) {
    counts.emplace_back(power_text(decade), 0);
  }
  for (std::size_t i = 0; i < row.decades.size(); ++i) {
    const Index place = row.decades[i] - range.first;
    const std::size_t at = place < 0 ? start - 1 : start + static_cast<std::size_t>(place);
    counts[at].second += row.in_decade[i];
  }
  return counts;
}

std::string bars(const CompareRow& row, const DecadeRange& range, const Style& style) {
  const Counts counts = counts_of(row, range);
  Index most = 1;
  for (const auto& [name, count] : counts) most = std::max(most, count);
  TextColumn names{.heading = "|a - b|", .unit = {}, .cells = {}, .numeric = false, .key = true};
  TextColumn numbers{.heading = "elements", .unit = {}, .cells = {}};
  TextColumn drawn{.heading = "", .unit = {}, .cells = {}, .numeric = false};
  for (const auto& [name, count] : counts) {
    const double length = static_cast<double>(count) / static_cast<double>(most) * kBarWidth;
    const auto width = static_cast<std::size_t>(std::lround(length));
    names.cells.push_back(name);
    numbers.cells.push_back(std::to_string(count));
    drawn.cells.emplace_back(count > 0 ? std::max<std::size_t>(width, 1) : 0, '#');
  }
  return text_table({names, numbers, drawn}, style.width, style.color);
}

std::string counts_table(const std::vector<CompareRow>& rows, const DecadeRange& range,
                         const Style& style) {
  std::vector<TextColumn> columns = {
      {.heading = "|a - b|", .unit = {}, .cells = {}, .numeric = false, .key = true}};
  for (const CompareRow& row : rows) {
    if (row.decades.empty()) continue;
    columns[0].cells.push_back(row.name);
    const Counts counts = counts_of(row, range);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (columns.size() <= i + 1) {
        columns.push_back({.heading = counts[i].first, .unit = {}, .cells = {}});
      }
      columns[i + 1].cells.push_back(std::to_string(counts[i].second));
    }
  }
  return text_table(columns, style.width, style.color);
}

std::vector<std::string_view> columns_for(bool is_case) {
  if (is_case) {
    return {"name",           "max_abs_error", "plain_error",   "error_ratio",
            "careless_error", "apart",         "relative_norm", "correlation",
            "max_ulp",        "first_apart",   "atol"};
  }
  return {
      "name",          "shape",   "dtype_a",       "dtype_b",     "equal", "apart", "max_abs_error",
      "max_rel_error", "max_ulp", "relative_norm", "correlation", "where", "a",     "b",
      "atol",          "rtol"};
}

}  // namespace

std::optional<std::string> compare_table(const CompareOptions& /*options*/,
                                         const CompareResult& result,
                                         const std::vector<std::string>& /*shown*/,
                                         const Style& style) {
  std::string text;
  for (const ResultRef& column : result_of(result)) {
    if (column.name != "rows") continue;
    const auto& rows = std::get<RowsRef>(column.value);
    text +=
        rows_block(column, chosen_columns(rows, columns_for(result.verdict.has_value())), style);
  }
  const bool one = result.rows.size() == 1;
  if (const DecadeRange range(result.rows, one ? kMostBars : kMostColumns); !range.empty()) {
    text += "\n";
    text += one ? bars(result.rows[0], range, style) : counts_table(result.rows, range, style);
  }
  if (result.verdict) text += "\n" + wrapped(*result.verdict, style.width, 0) + "\n";
  return text + fmt::format("\nequal  {}\n", result.equal);
}

}  // namespace attnlab
