#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "attnlab/core/field.h"

// Options without their types; core/describe.h tells the whole.

namespace attnlab {

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

// The option's value in words for errors: "true", "0.5", "top-left", "mask.npy", "[2, 3]" of a
// tensor in a path's place; empty when it has none.
std::string value_of(const OptionRef& option);

// The first of `options` whose value is not its default, null when there is none. The two lists are
// of structs of one type; files and lists count as changed when they are not empty.
const OptionRef* first_changed(const std::vector<OptionRef>& options,
                               const std::vector<OptionRef>& defaults);

}  // namespace attnlab
