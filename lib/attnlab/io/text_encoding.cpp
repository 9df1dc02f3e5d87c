#include "attnlab/io/text_encoding.h"

#include <algorithm>

#include "attnlab/core/error.h"

namespace attnlab {

std::string_view utf8_text(std::string_view text, std::string_view source) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  const std::string_view start = text.substr(0, 2);
  if (start == "\xFF\xFE" || start == "\xFE\xFF") {
    throw InputError(source, "", "", "is not UTF-8: its byte-order mark is that of UTF-16");
  }
  if (start.find('\0') != std::string_view::npos) {
    throw InputError(source, "", "", "is not UTF-8: it has NUL bytes as UTF-16 has");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw InputError(source, text_place(text, nul), "", "a NUL byte cannot stand in text");
  }
  return text;
}

std::string text_place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::string_view row = before.substr(before.rfind('\n') + 1);
  const auto column = 1 + std::count_if(row.begin(), row.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
                      });
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace attnlab
