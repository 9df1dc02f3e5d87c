#pragma once

namespace attnlab {

// Of the program, besides 0, 1 for a check that failed and 128 + the number of a signal.
inline constexpr int kBadInput = 2;
inline constexpr int kInternal = 3;

}  // namespace attnlab
