#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "attnlab/core/field.h"

// Results without their types; core/describe.h tells the whole.

namespace attnlab {

struct ResultRef;

// A list of described rows, or one described object (std::optional of a described struct). An
// optional list or object that is not there stands in no result.
struct RowsRef {
  std::size_t count = 0;
  bool is_object = false;
  bool absent = false;
  std::vector<ResultRef> columns;                          // names only; their values are null
  std::function<std::vector<ResultRef>(std::size_t)> row;  // the cells of one row
};

// A value of a result: a null pointer for a column without its row.
using ResultValue =
    std::variant<const bool*, const Index*, const double*, const std::string*,
                 const std::optional<bool>*, const std::optional<Index>*,
                 const std::optional<double>*, const std::optional<std::string>*,
                 const std::vector<Index>*, const std::vector<double>*,
                 const std::vector<std::string>*, const std::optional<AnyTensor>*, RowsRef>;

struct ResultRef {
  std::string_view name;
  std::string_view help;
  std::string_view unit;
  std::string_view formula;
  std::string_view shape;
  bool shown = false;
  ResultValue value;

  bool is_matrix() const { return std::holds_alternative<const std::optional<AnyTensor>*>(value); }
  // An optional list or object that is not there.
  bool absent() const {
    const auto* rows = std::get_if<RowsRef>(&value);
    return rows != nullptr && rows->absent;
  }
  // The matrix when this is one that was computed, else null.
  const AnyTensor* matrix() const;
};

namespace detail {

template <class T>
concept Described = requires {
  T::fields();
};

// How a list of described rows, or an optional one, or one optional row is counted and read.
template <class T>
struct RowList : std::false_type {};
template <Described R>
struct RowList<std::vector<R>> : std::true_type {
  using Row = R;
  static constexpr bool kIsObject = false;
  static bool absent(const std::vector<R>&) { return false; }
  static std::size_t count(const std::vector<R>& rows) { return rows.size(); }
  static const R* row(const std::vector<R>& rows, std::size_t i) { return &rows[i]; }
};
template <Described R>
struct RowList<std::optional<std::vector<R>>> : std::true_type {
  using Row = R;
  static constexpr bool kIsObject = false;
  static bool absent(const std::optional<std::vector<R>>& rows) { return !rows; }
  static std::size_t count(const std::optional<std::vector<R>>& rows) {
    return rows ? rows->size() : 0;
  }
  static const R* row(const std::optional<std::vector<R>>& rows, std::size_t i) {
    return &(*rows)[i];
  }
};
template <Described R>
struct RowList<std::optional<R>> : std::true_type {
  using Row = R;
  static constexpr bool kIsObject = true;
  static bool absent(const std::optional<R>& row) { return !row; }
  static std::size_t count(const std::optional<R>& row) { return row ? 1 : 0; }
  static const R* row(const std::optional<R>& row, std::size_t) { return &*row; }
};

template <class S>
void append_results(const S* result, std::vector<ResultRef>& out);

template <class T>
ResultValue result_value(const T* member) {
  if constexpr (RowList<T>::value) {
    using List = RowList<T>;
    RowsRef rows;
    rows.is_object = List::kIsObject;
    append_results(static_cast<const typename List::Row*>(nullptr), rows.columns);
    if (member != nullptr) {
      rows.absent = List::absent(*member);
      rows.count = List::count(*member);
      rows.row = [member](std::size_t i) {
        std::vector<ResultRef> cells;
        append_results(List::row(*member, i), cells);
        return cells;
      };
    }
    return rows;
  } else {
    return member;
  }
}

template <class S, class T>
void append_result(const S* result, const Field<S, T>& f, std::vector<ResultRef>& out) {
  const T* member = result == nullptr ? nullptr : &(result->*f.member);
  out.push_back({f.name, f.help, f.extras.unit, f.extras.formula, f.extras.shape, f.extras.shown,
                 result_value(member)});
}
template <class S, class T>
void append_result(const S* result, const Group<S, T>& g, std::vector<ResultRef>& out) {
  const std::size_t first = out.size();
  append_results(result == nullptr ? nullptr : &(result->*g.member), out);
  for (std::size_t i = first; i < out.size(); ++i) {
    if (out[i].name == g.shown) out[i].shown = true;
  }
}
template <class S>
void append_results(const S* result, std::vector<ResultRef>& out) {
  std::apply([&](const auto&... f) { (append_result(result, f, out), ...); }, S::fields());
}

}  // namespace detail

// The fields of `result`, groups included, in order. The references live as long as `result`.
template <class S>
std::vector<ResultRef> result_of(const S& result) {
  std::vector<ResultRef> out;
  detail::append_results(&result, out);
  return out;
}

// What results of type S hold, without one at hand: every value is null.
template <class S>
std::vector<ResultRef> columns_of() {
  std::vector<ResultRef> out;
  detail::append_results(static_cast<const S*>(nullptr), out);
  return out;
}

}  // namespace attnlab
