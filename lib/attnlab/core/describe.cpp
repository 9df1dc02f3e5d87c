#include "attnlab/core/describe.h"

#include <algorithm>

namespace attnlab {

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
