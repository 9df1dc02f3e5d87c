#include "render/weights_map.h"

#include <algorithm>

#include "render/heat_map.h"
#include "render/rounded_text.h"

namespace attnlab {
namespace {

std::string number_or_dash(const std::optional<double>& value, int digits) {
  return value ? significant_text(*value, digits) : "-";
}

// "was 0.52, it 0.31"
std::string top_text(const WeightsRow& row, const Style& style, int digits) {
  std::string text;
  for (std::size_t i = 0; i < row.top_keys.size(); ++i) {
    const auto key = static_cast<std::size_t>(row.top_keys[i]);
    if (i > 0) text += ", ";
    text += key < style.column_names.size() ? style.column_names[key] : std::to_string(key);
    text += ' ';
    text += significant_text(row.top_weights[i], digits);
  }
  return text;
}

RowStatistics statistics_of(const WeightsOptions& options, const WeightsResult& result,
                            const Style& style) {
  const int digits = std::min(style.digits, 3);  // beside a map a glance must do
  RowStatistics statistics;
  statistics.headings = {"max", "entropy", "effective keys"};
  if (options.top) statistics.headings.emplace_back("top");
  for (const WeightsRow& row : result.rows) {
    std::vector<std::string> cells = {significant_text(row.max, digits),
                                      number_or_dash(row.entropy, digits),
                                      number_or_dash(row.effective_keys, digits)};
    if (options.top) cells.push_back(top_text(row, style, digits));
    statistics.cells.push_back(std::move(cells));
  }
  return statistics;
}

}  // namespace

std::optional<std::string> weights_map(const WeightsOptions& options, const WeightsResult& result,
                                       const std::vector<std::string>& shown, const Style& style) {
  const bool wanted = std::find(shown.begin(), shown.end(), "weights") != shown.end();
  if (!style.terminal || !wanted || !result.weights) return std::nullopt;
  return heat_map(*result.weights, "[.., heads, n, m]", style,
                  statistics_of(options, result, style));
}

}  // namespace attnlab
