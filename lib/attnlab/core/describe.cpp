#include "attnlab/core/describe.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace attnlab {

namespace {

bool changed(const TensorSource& value, const TensorSource&) { return !value.empty(); }
bool changed(const NamedFiles& value, const NamedFiles&) { return !value.empty(); }
bool changed(const WordOrNumber& value, const WordOrNumber& initial) {
  return value.word != initial.word || value.number != initial.number;
}
// A switch that is off changes nothing, whether it was given or not.
bool changed(const std::optional<bool>& value, const std::optional<bool>& initial) {
  return value.value_or(false) != initial.value_or(false);
}
template <class T>
bool changed(const T& value, const T& initial) {
  return !(value == initial);
}

bool is_changed(const OptionValue& value, const OptionValue& initial) {
  return std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        const auto& other = std::get<Held>(initial);
        if constexpr (std::is_pointer_v<Held>) {
          return changed(*held, *other);
        } else {
          return held.get(held.object) != other.get(other.object);
        }
      },
      value);
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const FilePath& value) { return value.path; }
std::string text_of(const NamedFile& value) { return value.name + "=" + value.path; }
std::string text_of(const TensorSource& value) {
  return value.values ? value.values->shape().str() : value.path;
}
template <class T>
requires std::is_arithmetic_v<T> std::string text_of(T value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}
std::string text_of(const WordOrNumber& value) {
  return value.is_number() ? text_of(value.number) : value.word;
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "";
}
template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string text;
  for (const T& value : list) text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}
std::string text_of(const ChoiceRef& choice) {
  return std::string(choice.names[static_cast<std::size_t>(choice.get(choice.object))]);
}
std::string text_of(const ChoiceListRef& choice) {
  std::vector<std::string> names;
  for (const int i : choice.get(choice.object)) {
    names.emplace_back(choice.names[static_cast<std::size_t>(i)]);
  }
  return text_of(names);
}

}  // namespace

std::string value_of(const OptionRef& option) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>) {
          return text_of(*value);
        } else {
          return text_of(value);
        }
      },
      option.value);
}

const OptionRef* first_changed(const std::vector<OptionRef>& options,
                               const std::vector<OptionRef>& defaults) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (is_changed(options[i].value, defaults[i].value)) return &options[i];
  }
  return nullptr;
}

std::string OptionRef::flag() const {
  std::string text = "--" + std::string(name);
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const AnyTensor* ResultRef::matrix() const {
  const auto* const* matrix = std::get_if<const std::optional<AnyTensor>*>(&value);
  if (matrix == nullptr || *matrix == nullptr || !**matrix) return nullptr;
  return &***matrix;
}

}  // namespace attnlab
