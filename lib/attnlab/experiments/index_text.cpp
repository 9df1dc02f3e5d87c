#include "attnlab/experiments/index_text.h"

#include <fmt/format.h>

#include <vector>

namespace attnlab {

std::string index_text(const Shape& shape, Index i) {
  std::vector<Index> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = i % shape[axis];
    i /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace attnlab
