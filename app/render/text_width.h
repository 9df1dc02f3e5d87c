#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnlab {

// Text measured in the columns a terminal gives it: UTF-8, ideographs and emoji two columns wide,
// combining marks none.

int display_width(std::string_view text);

// What stands in one place on the screen: each base character with the marks that follow it.
std::vector<std::string> glyphs(std::string_view text);

// `text` in at most `width` columns, its end replaced by an ellipsis when it is longer. Control
// characters and malformed bytes are escaped first, so that a token cannot steer the terminal.
std::string clip(std::string_view text, int width);

// Filled up with spaces to `width` columns, at the right or the left; longer text is left alone.
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

// Without the spaces at the end.
void trim_end(std::string& line);

// ANSI bold when `color`, else as it is.
std::string bold(std::string_view text, bool color);

}  // namespace attnlab
