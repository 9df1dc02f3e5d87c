#pragma once

#include <string>
#include <vector>

namespace attnlab {

// How text for people looks.
struct Style {
  int width = 80;                           // columns of the terminal
  int digits = 4;                           // significant digits
  bool color = false;                       // ANSI escapes allowed
  bool true_color = false;                  // 24-bit colours too; else the 256 of xterm
  bool terminal = false;                    // it is looked at, not kept or piped on
  std::vector<std::string> row_names = {};  // of matrices, from --tokens; may be empty
  std::vector<std::string> column_names = {};
};

}  // namespace attnlab
