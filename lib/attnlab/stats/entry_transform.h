#pragma once

#include <cstdint>

namespace attnlab {

// The standard entries that are functions of one word, one by one: fill_standard makes them in
// vectors where it can, with these bits.
float uniform_entry(std::uint32_t bits);
float rademacher_entry(std::uint32_t bits);
float laplace_entry(std::uint32_t bits);

inline constexpr float kSqrt3 = 0x1.bb67aep+0f, kSqrtHalf = 0x1.6a09e6p-1f;

}  // namespace attnlab
