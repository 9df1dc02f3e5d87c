#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "attnlab/core/values.h"

// The field list: one declaration an option, one a result column.
//
// An options struct has defaulted members and a static constexpr fields() that names each once:
//
//     struct Options {
//       Index n = 6;
//       MaskOptions mask;
//       static constexpr auto fields() {
//         return std::tuple(field("n", &Options::n, "queries", {.range = at_least<Index>(1)}),
//                           group("Masks", &Options::mask));
//       }
//     };
//
// options_of(options) turns the list into references that name, describe and hold every value
// without its struct's type: flags, config keys, schema, help, validation and the echo in results
// are written once, over those references. A result struct and its rows have the same kind of
// list, read through result_of(). The name is the config key, the column and, with dashes for
// underscores, the flag; the default is the member's initialiser.

namespace attnlab {

// ---- what a declaration says --------------------------------------------------------------------

// The values a number may take. An open end excludes the bound itself.
template <class T>
struct Range {
  std::optional<T> low = std::nullopt;
  std::optional<T> high = std::nullopt;
  bool low_open = false;
  bool high_open = false;
};

template <class T>
constexpr Range<T> at_least(T low) {
  return {.low = low};
}
template <class T>
constexpr Range<T> above(T low) {
  return {.low = low, .low_open = true};
}
template <class T>
constexpr Range<T> between(T low, T high) {
  return {.low = low, .high = high};
}

// Enumerations that may be options specialise this with the names of their values, in order:
//     template <> inline constexpr std::array<std::string_view, 2> kChoiceNames<Align> = {...};
template <class E>
inline constexpr int kChoiceNames = 0;

namespace detail {
template <class T>
struct Element {
  using type = T;
};
template <class T>
struct Element<std::vector<T>> {
  using type = T;
};
template <class T>
struct Element<std::optional<T>> {
  using type = T;
};
template <>
struct Element<WordOrNumber> {
  using type = double;
};
// What a range is of: the number itself, or those of a list. Fields without numbers carry an
// unused Range<double>.
template <class T>
using RangeType =
    Range<std::conditional_t<std::is_same_v<typename Element<T>::type, Index> ||
                                 std::is_same_v<typename Element<T>::type, std::uint64_t>,
                             typename Element<T>::type, double>>;
}  // namespace detail

// The optional parts of a declaration.
template <class T>
struct Extras {
  // Options: what a number counts or what a text names (GNU style: "FILE", "pairs").
  std::string_view unit = {};
  detail::RangeType<T> range = {};
  // Options: the words a WordOrNumber may be.
  std::span<const std::string_view> words = {};
  // Options: given without a flag, in the order of declaration; a list takes all that is left.
  bool positional = false;
  // Options: a result repeats it, since it can change the result.
  bool echo = true;
  // Options: a TensorSource whose flag may hold a list of numbers (3,5) in place of a path.
  bool list_text = false;
  // Options: NaN and the infinities are values too.
  bool non_finite = false;
  // Results: how it is computed ("softmax(masked_scores)") and its axes ("[.., heads, n, m]").
  std::string_view formula = {};
  std::string_view shape = {};
  // Results: printed when --show does not choose.
  bool shown = false;
};

template <class S, class T>
struct Field {
  std::string_view name;
  T S::*member;
  std::string_view help;
  Extras<T> extras;
};

template <class S, class T>
struct Group {
  std::string_view heading;
  T S::*member;
  std::string_view shown;
};

template <class S, class T>
constexpr Field<S, T> field(std::string_view name, T S::*member, std::string_view help,
                            Extras<T> extras = {}) {
  return {name, member, help, extras};
}

// The fields of a described member, as if they stood here. Options: the heading groups them in the
// help. Results: the field called `shown` is printed by default in this result.
template <class S, class T>
constexpr Group<S, T> group(std::string_view heading, T S::*member, std::string_view shown = {}) {
  return {heading, member, shown};
}

// ---- options without their types ----------------------------------------------------------------

// An enumeration's value by index into its names.
struct ChoiceRef {
  std::span<const std::string_view> names;
  void* object = nullptr;
  int (*get)(const void*) = nullptr;
  void (*set)(void*, int) = nullptr;
};

// A list of an enumeration's values.
struct ChoiceListRef {
  std::span<const std::string_view> names;
  void* object = nullptr;
  std::vector<int> (*get)(const void*) = nullptr;
  void (*set)(void*, const std::vector<int>&) = nullptr;
};

using OptionValue =
    std::variant<bool*, Index*, std::uint64_t*, double*, std::string*, std::optional<bool>*,
                 std::optional<Index>*, std::optional<double>*, std::vector<Index>*,
                 std::vector<double>*, std::vector<std::string>*, WordOrNumber*, FilePath*,
                 std::vector<FilePath>*, TensorSource*, NamedFiles*, ChoiceRef, ChoiceListRef>;

using OptionRange = std::variant<Range<Index>, Range<std::uint64_t>, Range<double>>;

struct OptionRef {
  std::string_view name;
  std::string_view help;
  std::string_view heading;
  std::string_view unit;
  OptionRange range;
  std::span<const std::string_view> words;
  bool positional = false;
  bool echo = true;
  bool list_text = false;
  bool non_finite = false;
  OptionValue value;

  // "--d-k"
  std::string flag() const;
};

namespace detail {

template <class T>
OptionValue option_value(T& member) {
  using E = typename Element<T>::type;
  if constexpr (std::is_enum_v<T>) {
    return ChoiceRef{kChoiceNames<T>, &member,
                     [](const void* o) { return static_cast<int>(*static_cast<const T*>(o)); },
                     [](void* o, int i) { *static_cast<T*>(o) = static_cast<T>(i); }};
  } else if constexpr (std::is_enum_v<E>) {
    return ChoiceListRef{kChoiceNames<E>, &member,
                         [](const void* o) {
                           std::vector<int> indices;
                           for (const E e : *static_cast<const T*>(o)) {
                             indices.push_back(static_cast<int>(e));
                           }
                           return indices;
                         },
                         [](void* o, const std::vector<int>& indices) {
                           auto& list = *static_cast<T*>(o);
                           list.clear();
                           for (const int i : indices) list.push_back(static_cast<E>(i));
                         }};
  } else {
    return &member;
  }
}

template <class S>
void append_options(S& options, std::string_view heading, std::vector<OptionRef>& out);

template <class S, class T>
void append_option(S& options, const Field<S, T>& f, std::string_view heading,
                   std::vector<OptionRef>& out) {
  out.push_back({f.name, f.help, heading, f.extras.unit, f.extras.range, f.extras.words,
                 f.extras.positional, f.extras.echo, f.extras.list_text, f.extras.non_finite,
                 option_value(options.*f.member)});
}
template <class S, class T>
void append_option(S& options, const Group<S, T>& g, std::string_view /*heading*/,
                   std::vector<OptionRef>& out) {
  append_options(options.*g.member, g.heading, out);
}
template <class S>
void append_options(S& options, std::string_view heading, std::vector<OptionRef>& out) {
  std::apply([&](const auto&... f) { (append_option(options, f, heading, out), ...); },
             S::fields());
}

}  // namespace detail

// The fields of `options`, groups included, in order. The references live as long as `options`.
template <class S>
std::vector<OptionRef> options_of(S& options) {
  std::vector<OptionRef> out;
  detail::append_options(options, "", out);
  return out;
}

// The first of `options` whose value is not its default, null when there is none. The two lists are
// of structs of one type; files and lists count as changed when they are not empty.
const OptionRef* first_changed(const std::vector<OptionRef>& options,
                               const std::vector<OptionRef>& defaults);

// ---- results without their types ----------------------------------------------------------------

struct ResultRef;

// A list of described rows.
struct RowsRef {
  std::size_t count = 0;
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
  // The matrix when this is one that was computed, else null.
  const AnyTensor* matrix() const;
};

namespace detail {

template <class T>
struct IsRowList : std::false_type {};
template <class Row>
    struct IsRowList<std::vector<Row>> : std::bool_constant < requires {
  Row::fields();
} > {};

template <class S>
void append_results(const S* result, std::vector<ResultRef>& out);

template <class T>
ResultValue result_value(const T* member) {
  if constexpr (IsRowList<T>::value) {
    using Row = typename T::value_type;
    RowsRef rows;
    append_results(static_cast<const Row*>(nullptr), rows.columns);
    if (member != nullptr) {
      rows.count = member->size();
      rows.row = [member](std::size_t i) {
        std::vector<ResultRef> cells;
        append_results(&(*member)[i], cells);
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
