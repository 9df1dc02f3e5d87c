#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace attnlab {

// `text` with the letters A to Z as a to z, whatever the locale.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

}  // namespace attnlab
