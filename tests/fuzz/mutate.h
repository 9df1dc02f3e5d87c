#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace attnlab {

// SplitMix64 (Steele, Lea and Flood 2014): the same mutations on every machine.
class Bits {
 public:
  explicit Bits(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

// What parsers tend to stumble over.
inline constexpr std::array<std::string_view, 24> kTokens = {"[",          "]",
                                                             "{",          "}",
                                                             "(",          ")",
                                                             ",",          ":",
                                                             "\"",         "'",
                                                             "-",          "1e999",
                                                             "1e-999",     "NaN",
                                                             "null",       "99999999999999999999",
                                                             "4294967296", "-1",
                                                             "\n",         "\r\n",
                                                             "\xFF\xFE",   "\xEF\xBB\xBF",
                                                             "\t",         "\\u0000"};

inline void mutate(std::string& bytes, Bits& bits) {
  const std::size_t at = bits.below(bytes.size() + 1);
  const std::size_t count = bits.below(9);
  switch (bits.below(7)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << bits.below(8)));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bits.below(256));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, count);
      break;
    case 4:
      bytes.insert(at, kTokens[bits.below(kTokens.size())]);
      break;
    case 5:
      bytes.insert(bits.below(bytes.size() + 1), bytes.substr(at, count * 8));
      break;
    default:
      bytes.insert(at, count, static_cast<char>(bits.below(256)));
  }
}

}  // namespace attnlab
