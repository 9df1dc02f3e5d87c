#pragma once

#include <array>

// The numbers in attention/exponential-inl.h.
namespace attnlab::exponential_constants {

// q with e^r = 1 + r + r^2 q(r) for |r| at most ln 2 / 2, the highest power first. Minimax in
// relative error of the exponential, 3.6e-18 (0.03 of a float64 rounding).
inline constexpr std::array kQuotient = {
    0x1.ad7fa88df8bf0p-26, 0x1.28ad6892f1381p-22, 0x1.71df251db219cp-19, 0x1.a0199a16f8b41p-16,
    0x1.a01a012a763d4p-13, 0x1.6c16c18426636p-10, 0x1.1111111127b77p-7,  0x1.555555555088cp-5,
    0x1.55555555554fap-3,  0x1.000000000000ap-1};

inline constexpr double kLog2E = 1.4426950408889634;
// ln 2 in two parts, the first so short that its whole multiples below 2048 are exact.
inline constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
inline constexpr double kRound = 0x1.8p52;  // added and taken away it leaves a whole number
// From here on the exponential is normal.
inline constexpr double kLowestNormal = -708;

}  // namespace attnlab::exponential_constants
