#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "attnlab/core/dtype.h"

namespace attnlab {

// The float that results and cases name as "float32"; nothing for other texts.
inline std::optional<DType> float_of_name(std::string_view name) {
  constexpr std::array<DType, 4> kFloats = {DType::float16, DType::bfloat16, DType::float32,
                                            DType::float64};
  for (const DType dtype : kFloats) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace attnlab
