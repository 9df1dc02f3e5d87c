#pragma once

namespace attnlab::test {

// Of very many combinations a test takes every one where the library is optimised, and one in five
// where it is not: there each takes ten times as long, and it is the asserts and sanitizers that
// are the point. (Five has no factor in common with the powers of two of options that are bits.)
#ifdef NDEBUG
inline constexpr int kCombinationStep = 1;
#else
inline constexpr int kCombinationStep = 5;
#endif

}  // namespace attnlab::test
