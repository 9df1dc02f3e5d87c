#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attnlab/core/values.h"

// What one entry of a field list says; core/describe.h tells the whole.

namespace attnlab {

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

}  // namespace attnlab
