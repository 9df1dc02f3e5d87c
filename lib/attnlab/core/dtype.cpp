#include "attnlab/core/dtype.h"

#include <array>

namespace attnlab {

std::string_view dtype_name(DType dtype) {
  static constexpr std::array<std::string_view, 13> kNames = {
      "bool",   "int8",   "int16",   "int32",    "int64",   "uint8",  "uint16",
      "uint32", "uint64", "float16", "bfloat16", "float32", "float64"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::size_t dtype_size(DType dtype) {
  return visit_dtype(dtype, [](auto tag) { return sizeof(typename decltype(tag)::type); });
}

}  // namespace attnlab
