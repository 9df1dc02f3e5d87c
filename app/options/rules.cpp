#include "options/rules.h"

#include <fmt/format.h>

#include "attnlab/io/number_text.h"
#include "options/overloaded.h"

namespace attnlab {
namespace {

std::string text_of(double value) {
  const std::string_view name = non_finite_name(value);
  return name.empty() ? fmt::format("{}", value) : std::string(name);
}
std::string text_of(Index value) { return fmt::format("{}", value); }
std::string text_of(std::uint64_t value) { return fmt::format("{}", value); }

template <class T>
std::string words_for(const Range<T>& range) {
  if (range.low && range.high && !range.low_open && !range.high_open) {
    return text_of(*range.low) + " to " + text_of(*range.high);
  }
  std::string text;
  if (range.low) text = (range.low_open ? "more than " : "at least ") + text_of(*range.low);
  if (range.high) {
    if (!text.empty()) text += " and ";
    text += (range.high_open ? "less than " : "at most ") + text_of(*range.high);
  }
  return text;
}

// Written so that NaN is in no range that has an end.
template <class T>
bool contains(const Range<T>& range, T value) {
  if (range.low && !(range.low_open ? value > *range.low : value >= *range.low)) return false;
  if (range.high && !(range.high_open ? value < *range.high : value <= *range.high)) return false;
  return true;
}

std::string with_range(const std::string& noun, const OptionRange& range) {
  const std::string text = range_text(range);
  return text.empty() ? noun : noun + ", " + text;
}

// "a, b or c"
std::string alternatives(std::span<const std::string_view> names, std::string_view last = {}) {
  std::string text;
  const std::size_t count = names.size() + (last.empty() ? 0 : 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += i + 1 == count ? " or " : ", ";
    text += i < names.size() ? names[i] : last;
  }
  return text;
}

}  // namespace

std::string range_text(const OptionRange& range) {
  return std::visit([](const auto& r) { return words_for(r); }, range);
}

std::string value_text(const OptionRef& option) {
  const auto integer = [&](const auto&) { return with_range("an integer", option.range); };
  const auto number = [&](const auto&) { return with_range("a number", option.range); };
  return std::visit(
      Overloaded{
          [](bool*) -> std::string { return "true or false"; },
          [](std::optional<bool>*) -> std::string { return "true or false"; },
          [&](Index* p) { return integer(p); },
          [&](std::optional<Index>* p) { return integer(p); },
          [&](std::vector<Index>* p) { return integer(p); },
          [&](std::uint64_t* p) {
            const std::string text = integer(p);
            return range_text(option.range).empty() ? text + ", 0 to 18446744073709551615" : text;
          },
          [&](double* p) { return number(p); },
          [&](std::optional<double>* p) { return number(p); },
          [&](std::vector<double>* p) { return number(p); },
          [](std::string*) -> std::string { return "text"; },
          [](std::vector<std::string>*) -> std::string { return "a name"; },
          [&](WordOrNumber*) {
            return with_range(alternatives(option.words, "a number"), option.range);
          },
          [](FilePath*) -> std::string { return "a file"; },
          [](std::vector<FilePath>*) -> std::string { return "a file"; },
          [](TensorSource*) -> std::string { return "a file or an array of numbers"; },
          [](NamedFiles*) -> std::string { return "NAME=FILE"; },
          [](const ChoiceRef& choice) { return alternatives(choice.names); },
          [](const ChoiceListRef& choice) { return alternatives(choice.names); },
      },
      option.value);
}

std::optional<RangeViolation> range_violation(const OptionRef& option) {
  const auto check = [&]<class T>(T value) -> std::optional<RangeViolation> {
    const auto* range = std::get_if<Range<T>>(&option.range);
    if (range == nullptr || contains(*range, value)) return std::nullopt;
    return RangeViolation{text_of(value), "need " + words_for(*range)};
  };
  const auto check_list = [&](const auto& list) {
    std::optional<RangeViolation> violation;
    for (std::size_t i = 0; i < list.size() && !violation; ++i) violation = check(list[i]);
    return violation;
  };
  using Violation = std::optional<RangeViolation>;
  return std::visit(
      Overloaded{
          [&](Index* value) { return check(*value); },
          [&](std::uint64_t* value) { return check(*value); },
          [&](double* value) { return check(*value); },
          [&](std::optional<Index>* value) { return *value ? check(**value) : Violation(); },
          [&](std::optional<double>* value) { return *value ? check(**value) : Violation(); },
          [&](std::vector<Index>* list) { return check_list(*list); },
          [&](std::vector<double>* list) { return check_list(*list); },
          [&](WordOrNumber* value) {
            return value->is_number() ? check(value->number) : Violation();
          },
          [](const auto&) { return Violation(); },
      },
      option.value);
}

}  // namespace attnlab
