#pragma once

#include <array>
#include <cstdint>

// The numbers in the transform from bits to normals, which core/random.cpp does one by one and
// core/normal-inl.h in vectors. Polynomials begin with the coefficient of the highest power.

namespace attnlab::normal {

// q with ln(1 + t) = t + t^2 q(t) on [sqrt(1/2) - 1, sqrt(2) - 1]. Minimax in relative error of
// the logarithm, 3.5e-8 as rounded here (0.6 of a float32 rounding; the square root halves it).
inline constexpr std::array kLog1pQuotient = {0x1.65c7b4p-4f,  -0x1.2504acp-3f, 0x1.318520p-3f,
                                              -0x1.535d2ep-3f, 0x1.98d2c0p-3f,  -0x1.00049ap-2f,
                                              0x1.5556f4p-2f,  -0x1.fffffap-2f};

// sin(pi/2 x) = x (pi/2 + s(x^2)) on [-1/2, 1/2], with pi/2 rounded to float32 and its remainder in
// the first coefficient of s. Minimax, relative error 3.4e-9 as rounded here.
inline constexpr std::array kSineRest = {-0x1.2da156p-8f, 0x1.465eeap-4f, -0x1.4abbbap-1f,
                                         -0x1.a32bc6p-25f};
inline constexpr float kHalfPi = 0x1.921fb6p+0f;

// c with cos(pi/2 x) = 1 + x^2 c(x^2) on [-1/2, 1/2], and the 1. Minimax, relative error 4.4e-10 as
// rounded here.
inline constexpr std::array kCosine = {0x1.d4f7eep-11f, -0x1.55b2b6p-6f, 0x1.03c1b0p-2f,
                                       -0x1.3bd3ccp+0f, 1.0f};

inline constexpr float kLn2 = 0x1.62e430p-1f;
// The bits of the float32 below sqrt(1/2).
inline constexpr std::int32_t kSqrtHalf = 0x3f3504f3;

}  // namespace attnlab::normal
