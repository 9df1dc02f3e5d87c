#include "options/wrapped.h"

#include <algorithm>

namespace attnlab {

std::string wrapped(std::string_view text, int width, int indent) {
  const auto room = static_cast<std::size_t>(std::max(width - indent, 1));
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    if (column > 0 && column + 1 + length > room) {
      out += '\n';
      out.append(static_cast<std::size_t>(indent), ' ');
      column = 0;
    }
    if (column > 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, length);
    column += length;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return out;
}

}  // namespace attnlab
