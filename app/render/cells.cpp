#include "render/cells.h"

#include <algorithm>

#include "attnlab/core/error.h"
#include "attnlab/io/number_text.h"
#include "render/blocks.h"
#include "render/elide.h"
#include "render/json_text.h"
#include "render/rounded_text.h"

namespace attnlab {
namespace {

template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};

constexpr std::size_t kMostText = 200;
constexpr Index kMostListed = 12;

// ---- for people ---------------------------------------------------------------------------------

std::string people(bool value, int) { return value ? "true" : "false"; }
std::string people(Index value, int) { return std::to_string(value); }
std::string people(double value, int digits) { return significant_text(value, digits); }
std::string people(const std::string& value, int) { return printable(value, kMostText); }
std::string people(const AnyTensor& value, int digits) {
  return value.shape().rank() == 0 ? significant_text(value, 0, digits) : value.shape().str();
}
std::string people(const RowsRef& rows, int) {
  return std::to_string(rows.count) + (rows.count == 1 ? " row" : " rows");
}
template <class T>
std::string people(const std::vector<T>& list, int digits) {
  std::string text;
  for (const Index i : elided(std::ssize(list), kMostListed)) {
    if (!text.empty()) text += ", ";
    text += i == kGap ? "..." : people(list[static_cast<std::size_t>(i)], digits);
  }
  return "[" + text + "]";
}
template <class T>
std::string people(const std::optional<T>& value, int digits) {
  return value ? people(*value, digits) : "-";
}

// ---- for programs -------------------------------------------------------------------------------

std::string json(bool value) { return value ? "true" : "false"; }
std::string json(Index value) { return std::to_string(value); }
std::string json(double value) {
  std::string text;
  append_json_number(text, value);
  return text;
}
std::string json(const std::string& value) { return json_string(value); }
std::string json(const AnyTensor& value) { return json_line(value); }
std::string json(const RowsRef& rows) {
  if (rows.is_object) return rows.count == 0 ? "null" : json_object(rows.row(0));
  std::string text = "[";
  for (std::size_t i = 0; i < rows.count; ++i) {
    text += (i == 0 ? "" : ", ") + json_object(rows.row(i));
  }
  return text + "]";
}
template <class T>
std::string json(const std::vector<T>& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ", ") + json(list[i]);
  return text + "]";
}
template <class T>
std::string json(const std::optional<T>& value) {
  return value ? json(*value) : "null";
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string csv(bool value) { return json(value); }
std::string csv(Index value) { return json(value); }
std::string csv(double value) {
  std::string text;
  append_number(text, value);
  return text;
}
std::string csv(const std::string& value) {
  // An empty text differs from an empty cell, which is undefined.
  const bool plain = !value.empty() && value.find_first_of(",\"\r\n") == std::string::npos;
  return plain ? value : quoted(value);
}
std::string csv(const AnyTensor& value) {
  return value.shape().rank() == 0 ? csv(value.at(0)) : quoted(json(value));
}
std::string csv(const RowsRef& value) { return quoted(json(value)); }
template <class T>
std::string csv(const std::vector<T>& value) {
  return quoted(json(value));
}
template <class T>
std::string csv(const std::optional<T>& value) {
  return value ? csv(*value) : "";
}

// Calls f with the value itself.
template <class F>
auto with_value(const ResultValue& value, F&& f) {
  return std::visit(
      [&](const auto& v) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(v)>>) {
          return f(*v);
        } else {
          return f(v);
        }
      },
      value);
}

template <class T>
constexpr bool kIsDouble = std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>;
template <class T>
constexpr bool kIsIndex = std::is_same_v<T, Index> || std::is_same_v<T, std::optional<Index>>;

// Whether `what` holds of the type of the value, which itself may be null.
template <class F>
bool of_type(const ResultValue& value, F&& what) {
  return std::visit(
      [&](const auto& v) {
        return what(std::type_identity<
                    std::remove_cv_t<std::remove_pointer_t<std::decay_t<decltype(v)>>>>{});
      },
      value);
}

}  // namespace

std::string table_cell(const ResultValue& value, int digits) {
  return with_value(value, [digits](const auto& v) { return people(v, digits); });
}

std::string json_cell(const ResultValue& value) {
  return with_value(value, [](const auto& v) { return json(v); });
}

std::string csv_cell(const ResultValue& value) {
  return with_value(value, [](const auto& v) { return csv(v); });
}

std::string json_object(const std::vector<ResultRef>& values) {
  std::string text = "{";
  for (const ResultRef& value : values) {
    if (text.size() > 1) text += ", ";
    text += json_string(value.name) + ": " + json_cell(value.value);
  }
  return text + "}";
}

bool is_numeric(const ResultValue& value) {
  return of_type(value, [](auto tag) {
    using T = typename decltype(tag)::type;
    return kIsDouble<T> || kIsIndex<T>;
  });
}

bool is_measured(const ResultValue& value) {
  return of_type(value, [](auto tag) {
    using T = typename decltype(tag)::type;
    return kIsDouble<T> || IsList<T>::value || std::is_same_v<T, std::optional<AnyTensor>>;
  });
}

FlatRows flat_rows(const std::vector<ResultRef>& results, const std::vector<std::string>& shown) {
  const RowsRef* rows = nullptr;
  std::vector<ResultRef> scalars;
  for (const ResultRef& result : results) {
    const auto* found = std::get_if<RowsRef>(&result.value);
    if (rows == nullptr && found != nullptr && !found->is_object) rows = found;
    if (!is_scalar(result)) continue;
    const bool hidden =
        result.is_matrix() && std::find(shown.begin(), shown.end(), result.name) == shown.end();
    if (!hidden) scalars.push_back(result);
  }
  const bool one_row = rows == nullptr || (rows->count == 0 && !scalars.empty());
  if (!one_row) return {rows->columns, rows->count, rows->row};
  return {scalars, 1, [scalars](std::size_t) { return scalars; }};
}

}  // namespace attnlab
