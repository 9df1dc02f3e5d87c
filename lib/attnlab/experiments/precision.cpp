#include "attnlab/experiments/precision.h"

namespace attnlab {
namespace {

DType wider(DType a, DType b) {
  if (a == b) return a;
  if (is_sixteen_bit(a) && is_sixteen_bit(b)) return DType::float32;
  return std::max(a, b);
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

}  // namespace attnlab
