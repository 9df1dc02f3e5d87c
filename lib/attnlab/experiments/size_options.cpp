#include "attnlab/experiments/size_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"

namespace attnlab {

void require_size(std::string_view option, std::optional<Index> given, std::string_view tensor,
                  Index actual) {
  if (!given || *given == actual) return;
  throw InputError("", option, std::to_string(*given),
                   fmt::format("{} has {}; sizes are for drawing without files", tensor, actual));
}

void require_divisor(std::string_view option, Index value, std::string_view of, Index whole) {
  if (value >= 1 && whole % value == 0) return;
  throw InputError("", option, std::to_string(value),
                   fmt::format("need a divisor of the {}, {}", of, whole));
}

void require_drawing_memory(const std::vector<SizedTensor>& tensors, Precision precision) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  std::size_t element = sizeof(float);
  if (precision == Precision::float64) element += sizeof(double);
  if (precision == Precision::float16 || precision == Precision::bfloat16) element += 2;
  std::uint64_t total = 0;
  SizedAxis longest;
  for (const SizedTensor& tensor : tensors) {
    std::vector<std::uint64_t> lengths;
    for (const SizedAxis& axis : tensor) {
      lengths.push_back(static_cast<std::uint64_t>(axis.length));
      if (axis.length > longest.length) longest = axis;
    }
    // An empty tensor takes nothing, however long its other axes.
    if (std::find(lengths.begin(), lengths.end(), 0u) != lengths.end()) continue;
    const std::uint64_t bytes = checked_bytes(lengths, element).value_or(kMost);
    total = bytes > kMost - total ? kMost : total + bytes;
  }
  require_memory(total, longest.option, std::to_string(longest.length));
}

AnyTensor draw_normal(const Shape& shape, std::uint64_t seed, Stream stream) {
  require_memory(static_cast<std::uint64_t>(shape.size()) * sizeof(float),
                 "a drawn tensor " + shape.str());
  Tensor<float> tensor = Tensor<float>::uninitialized(shape);
  fill_normal(tensor.values(), seed, stream);
  return tensor;
}

}  // namespace attnlab
