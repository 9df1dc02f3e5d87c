#include "attnlab/experiments/precision.h"

#include <fmt/format.h>

#include <cmath>

namespace attnlab {
namespace {

DType wider(DType a, DType b) {
  if (a == b) return a;
  if (is_sixteen_bit(a) && is_sixteen_bit(b)) return DType::float32;
  return std::max(a, b);
}

// Elements that are finite before and not after.
Index count_overflows(const AnyTensor& before, const AnyTensor& after) {
  return before.visit([&](const auto& from) {
    return after.visit([&](const auto& to) {
      Index count = 0;
      for (Index i = 0; i < from.size(); ++i) {
        const bool was_finite = std::isfinite(convert_element<double>(from[i]));
        if (was_finite && !std::isfinite(convert_element<double>(to[i]))) ++count;
      }
      return count;
    });
  });
}

}  // namespace

DType resolve_precision(Precision precision, const std::vector<DType>& inputs) {
  switch (precision) {
    case Precision::float16:
      return DType::float16;
    case Precision::bfloat16:
      return DType::bfloat16;
    case Precision::float32:
      return DType::float32;
    case Precision::float64:
      return DType::float64;
    case Precision::automatic:
      break;
  }
  DType widest = is_floating(inputs.at(0)) ? inputs[0] : DType::float64;
  for (const DType dtype : inputs) {
    widest = wider(widest, is_floating(dtype) ? dtype : DType::float64);
  }
  return widest;
}

AnyTensor rounded_to(DType dtype, AnyTensor tensor, std::string_view name,
                     std::vector<std::string>& notes) {
  if (dtype == tensor.dtype()) return tensor;
  AnyTensor rounded = tensor.cast(dtype);
  const Index overflows = dtype == DType::float64 ? 0 : count_overflows(tensor, rounded);
  if (overflows > 0) {
    notes.push_back(fmt::format("{} value{} of {} beyond the range of {}: infinite in it",
                                overflows, overflows == 1 ? "" : "s", name, dtype_name(dtype)));
  }
  return rounded;
}

}  // namespace attnlab
