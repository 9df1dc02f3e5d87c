#pragma once

#include <string_view>

namespace attnlab {

// `text` without a UTF-8 byte-order mark. Throws InputError naming `source` when it is UTF-16 or
// UTF-32, told by a byte-order mark or by a NUL among its first two bytes, which no text in UTF-8
// has.
std::string_view utf8_text(std::string_view text, std::string_view source);

}  // namespace attnlab
