#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "attnlab/core/dtype.h"

namespace attnlab {

struct SafetensorsType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype;  // of tensors that can be read
};

// The types of the format, in the order by which the reference implementation lays the data out,
// the last first (safetensors/src/tensor.rs, enum Dtype).
inline constexpr std::array<SafetensorsType, 20> kSafetensorsTypes = {
    {{"BOOL", 8, DType::boolean},   {"F4", 4, std::nullopt},      {"F6_E2M3", 6, std::nullopt},
     {"F6_E3M2", 6, std::nullopt},  {"U8", 8, DType::uint8},      {"I8", 8, DType::int8},
     {"F8_E5M2", 8, std::nullopt},  {"F8_E4M3", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt},
     {"I16", 16, DType::int16},     {"U16", 16, DType::uint16},   {"F16", 16, DType::float16},
     {"BF16", 16, DType::bfloat16}, {"I32", 32, DType::int32},    {"U32", 32, DType::uint32},
     {"F32", 32, DType::float32},   {"C64", 64, std::nullopt},    {"F64", 64, DType::float64},
     {"I64", 64, DType::int64},     {"U64", 64, DType::uint64}}};

}  // namespace attnlab
