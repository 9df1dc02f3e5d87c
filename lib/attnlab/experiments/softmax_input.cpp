#include "attnlab/experiments/softmax_input.h"

#include <algorithm>
#include <array>
#include <limits>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {

AnyTensor read_softmax_input(const SoftmaxOptions& options, std::vector<std::string>& notes) {
  if (!options.values.empty()) {
    if (!options.x.empty()) {
      throw InputError("", "values", "", "give either numbers or a tensor x, not both");
    }
    Tensor<double> row(Shape{static_cast<Index>(options.values.size())});
    std::copy(options.values.begin(), options.values.end(), row.data());
    return row;
  }
  if (options.x.empty()) {
    throw InputError("", "values", "", "need numbers, or a tensor x in their place");
  }
  AnyTensor x = read_tensor(options.x, "x", notes);
  if (x.shape().rank() == 0) {
    throw InputError(options.x.path, "x", x.shape().str(), "need at least one axis");
  }
  return x;
}

Shape leading_axes(const Shape& shape) {
  return Shape(shape.axes().first(static_cast<std::size_t>(shape.rank() - 1)));
}

Shape jacobian_shape(const Shape& rows, std::size_t element_bytes, Index count) {
  if (rows.rank() == Shape::kMaxRank) {
    throw InputError("", "x", rows.str(),
                     "need at most 3 axes for the Jacobian, which has one more");
  }
  const auto n = static_cast<std::uint64_t>(rows[-1]);
  require_memory(checked_bytes(std::array{n, n, static_cast<std::uint64_t>(count)}, element_bytes)
                     .value_or(std::numeric_limits<std::uint64_t>::max()),
                 "jacobian");
  std::vector<Index> axes(rows.axes().begin(), rows.axes().end());
  axes.push_back(rows[-1]);
  return Shape(axes);
}

}  // namespace attnlab
