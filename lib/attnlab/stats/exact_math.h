#pragma once

#include <cstdint>

namespace attnlab {

// Logarithm and exponential in double that give the same bits with every compiler and library:
// nothing but +, -, *, /, fused multiply-adds and integer operations, every choice a select. No
// product is added to anything outside a fused multiply-add.

// ln u of u = (bits + 1/2) / 2^64; relative error below 2^-51 however near u is to 1.
double log_uniform64(std::uint64_t bits);

// e^a - 1 for 0 <= a <= 700; relative error below 2^-51.
double exp_minus_one(double a);

}  // namespace attnlab
