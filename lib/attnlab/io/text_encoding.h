#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attnlab {

// `text` without a UTF-8 byte-order mark. Throws InputError naming `source` when it is UTF-16 or
// UTF-32, told by a byte-order mark or by a NUL among its first two bytes, and the place of any
// other NUL: readers would take it for the end and drop what follows.
std::string_view utf8_text(std::string_view text, std::string_view source);

// "line 2, column 7" of the byte at `offset`, both from 1, columns counted in characters.
std::string text_place(std::string_view text, std::size_t offset);

}  // namespace attnlab
