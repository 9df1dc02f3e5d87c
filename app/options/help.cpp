#include "options/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "options/echo.h"
#include "options/overloaded.h"
#include "options/rules.h"
#include "options/wrapped.h"

namespace attnlab {
namespace {

constexpr int kTextColumn = 28;
constexpr std::size_t kLongestChoices = 24;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// A unit in capitals names the value ("FILE"); others count it ("pairs").
bool names_value(std::string_view unit) {
  return !unit.empty() && std::any_of(unit.begin(), unit.end(), is_upper);
}

std::string joined(std::span<const std::string_view> names, std::string_view separator) {
  return fmt::format("{}", fmt::join(names, separator));
}

std::string one_of(std::span<const std::string_view> names) {
  const std::string all = joined(names, "|");
  return all.size() <= kLongestChoices ? all : "NAME";
}

std::span<const std::string_view> choices_of(const OptionRef& option) {
  return std::visit(Overloaded{[](const ChoiceRef& choice) { return choice.names; },
                               [](const ChoiceListRef& choice) { return choice.names; },
                               [](const auto&) { return std::span<const std::string_view>(); }},
                    option.value);
}

std::string upper(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::string plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(plain(item));
  return fmt::format("{}", fmt::join(items, ","));
}

// "default 4"; nothing where there is none.
std::string default_text(const OptionRef& option) {
  const Json value = option_to_json(option);
  const bool empty_text = value.is_string() && value.get_ref<const std::string&>().empty();
  if (value.is_null() || value == false || empty_text) return "";
  if ((value.is_array() || value.is_object()) && value.empty()) return "";
  if (value == true) return "on unless " + option.flag() + "=false";
  return "default " + plain(value);
}

std::string describe(const OptionRef& option) {
  std::vector<std::string> facts;
  const auto choices = choices_of(option);
  if (!choices.empty() && joined(choices, "|").size() > kLongestChoices) {
    facts.push_back(joined(choices, ", "));
  }
  if (!option.unit.empty() && !names_value(option.unit)) facts.emplace_back(option.unit);
  if (const std::string range = range_text(option.range); !range.empty()) facts.push_back(range);
  if (const std::string value = default_text(option); !value.empty()) facts.push_back(value);
  std::string text(option.help);
  if (!facts.empty()) text += fmt::format(" ({})", fmt::join(facts, "; "));
  return text;
}

std::string entry(const std::string& left, const std::string& text, int width) {
  // A narrow terminal has no room for two columns.
  const bool columns = width >= 2 * kTextColumn;
  const int indent = columns ? kTextColumn : 6;
  std::string line = "  " + left;
  if (columns && static_cast<int>(line.size()) + 2 <= indent) {
    line.append(static_cast<std::size_t>(indent) - line.size(), ' ');
  } else {
    line += '\n';
    line.append(static_cast<std::size_t>(indent), ' ');
  }
  return line + wrapped(text, width, indent) + "\n";
}

std::string usage(std::string_view command, const std::vector<OptionRef>& options) {
  std::string line = fmt::format("Usage: attnlab {}", command);
  for (const OptionRef& option : options) {
    if (!option.positional) continue;
    const std::string name =
        names_value(option.unit) ? std::string(option.unit) : upper(option.name);
    line += fmt::format(" [{}]", name);
  }
  return line + " [options]\n";
}

std::vector<std::string_view> headings_of(const std::vector<OptionRef>& options) {
  std::vector<std::string_view> headings;
  for (const OptionRef& option : options) {
    if (std::find(headings.begin(), headings.end(), option.heading) == headings.end()) {
      headings.push_back(option.heading);
    }
  }
  return headings;
}

std::string section(std::string_view heading, const std::vector<OptionRef>& options, int width) {
  std::string text = fmt::format("\n{}:\n", heading.empty() ? "Options" : heading);
  for (const OptionRef& option : options) {
    if (option.heading != heading) continue;
    const std::string value = metavar(option);
    text += entry(option.flag() + (value.empty() ? "" : " " + value), describe(option), width);
  }
  return text;
}

// What --show and --save may name; * marks what is shown by default.
std::string matrices(const std::vector<ResultRef>& results, int width) {
  std::string text;
  for (const ResultRef& result : results) {
    if (!result.is_matrix()) continue;
    if (text.empty()) text = "\nMatrices (for --show and --save; * is shown by default):\n";
    std::string what(result.formula);
    if (!what.empty()) what += ": ";
    what += result.help;
    text += entry(std::string(result.name) + (result.shown ? " *" : ""), what, width);
  }
  return text;
}

// What the columns of rows mean, where a result has rows.
std::string columns(const std::vector<ResultRef>& results, int width) {
  std::string text;
  for (const ResultRef& result : results) {
    const auto* rows = std::get_if<RowsRef>(&result.value);
    if (rows == nullptr || result.name != "rows") continue;
    text = fmt::format("\nColumns ({}):\n", result.help);
    for (const ResultRef& column : rows->columns) {
      text += entry(std::string(column.name), std::string(column.help), width);
    }
  }
  return text;
}

}  // namespace

std::string metavar(const OptionRef& option) {
  if (names_value(option.unit)) {
    if (option.words.empty()) return std::string(option.unit);
    return joined(option.words, "|") + "|" + std::string(option.unit);
  }
  return std::visit(
      Overloaded{
          [](bool*) -> std::string { return ""; },
          [](std::optional<bool>*) -> std::string { return ""; },
          [](Index*) -> std::string { return "N"; },
          [](std::optional<Index>*) -> std::string { return "N"; },
          [](std::uint64_t*) -> std::string { return "N"; },
          [](std::vector<Index>*) -> std::string { return "N,..."; },
          [](std::vector<double>*) -> std::string { return "X,..."; },
          [](std::string*) -> std::string { return "TEXT"; },
          [](std::vector<std::string>*) -> std::string { return "NAME,..."; },
          [&](WordOrNumber*) -> std::string { return joined(option.words, "|") + "|X"; },
          [](NamedFiles*) -> std::string { return "NAME=FILE"; },
          [](FilePath*) -> std::string { return "FILE"; },
          [](std::vector<FilePath>*) -> std::string { return "FILE"; },
          [](TensorSource*) -> std::string { return "FILE"; },
          [](const ChoiceRef& choice) { return one_of(choice.names); },
          [](const ChoiceListRef& choice) { return one_of(choice.names) + ",..."; },
          [](const auto&) -> std::string { return "X"; },
      },
      option.value);
}

std::string help_text(std::string_view command, std::string_view summary, std::string_view examples,
                      const std::vector<OptionRef>& options, const std::vector<ResultRef>& results,
                      int width) {
  std::string text = usage(command, options) + "\n" + wrapped(summary, width, 0) + "\n";
  for (const std::string_view heading : headings_of(options)) {
    text += section(heading, options, width);
  }
  text += matrices(results, width);
  text += columns(results, width);
  if (!examples.empty()) text += fmt::format("\nExamples:\n{}\n", examples);
  return text;
}

}  // namespace attnlab
