#include "attnlab/core/describe.h"

#include <algorithm>

namespace attnlab {

namespace {

bool changed(const TensorSource& value, const TensorSource&) { return !value.empty(); }
bool changed(const NamedFiles& value, const NamedFiles&) { return !value.empty(); }
bool changed(const WordOrNumber& value, const WordOrNumber& initial) {
  return value.word != initial.word || value.number != initial.number;
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

}  // namespace

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
