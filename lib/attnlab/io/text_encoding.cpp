#include "attnlab/io/text_encoding.h"

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
  return text;
}

}  // namespace attnlab
