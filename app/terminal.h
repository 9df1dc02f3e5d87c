#pragma once

#include <string_view>

#include "options/output_options.h"

namespace attnlab {

// Whether standard output is a terminal.
bool on_terminal();

// Columns of the terminal that standard output is, else of COLUMNS, else 80; 20 at least, so that
// tables always have room for something.
int terminal_width();

// Whether text may be coloured: always and never say so; auto means standard output goes to a
// terminal that is not dumb, with NO_COLOR unset (https://no-color.org), and `to_stdout`.
bool use_color(Color choice, bool to_stdout);

// Whether the terminal says that it shows 24-bit colours (COLORTERM).
bool true_color_terminal();

// Writes all of `text` to standard output. Throws InputError when that fails (a full disk).
void write_stdout(std::string_view text);

}  // namespace attnlab
