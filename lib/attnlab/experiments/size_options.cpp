#include "attnlab/experiments/size_options.h"

#include <fmt/format.h>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"

namespace attnlab {

void require_size(std::string_view option, std::optional<Index> given, std::string_view tensor,
                  Index actual) {
  if (!given || *given == actual) return;
  throw InputError("", option, std::to_string(*given),
                   fmt::format("{} has {}; sizes are for drawing without files", tensor, actual));
}

AnyTensor draw_normal(const Shape& shape, std::uint64_t seed, Stream stream) {
  require_memory(static_cast<std::uint64_t>(shape.size()) * sizeof(float),
                 "a drawn tensor " + shape.str());
  Tensor<float> tensor = Tensor<float>::uninitialized(shape);
  fill_normal(tensor.values(), seed, stream);
  return tensor;
}

}  // namespace attnlab
