#pragma once

#include <array>
#include <cstdint>

namespace attnlab {

// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): 128 random bits as a pure function of a 128-bit counter and a 64-bit key. There is no
// state, so any draw can be made by any thread in any order.
using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr std::array<std::uint32_t, 2> kPhiloxMultiplier = {0xD2511F53, 0xCD9E8D57};

// The key of the next round.
constexpr PhiloxKey next_philox_key(PhiloxKey key) {
  return {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
}

constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier[0]} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = next_philox_key(key);
  }
  return counter;
}

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

}  // namespace attnlab
