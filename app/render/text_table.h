#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attnlab {

// Numbers as text, padded with spaces on both sides so that their decimal points stand in one
// column; texts without a digit (NaN, a dash) stand at the right.
std::vector<std::string> align_decimals(const std::vector<std::string>& numbers);

// One column of a table for people: all cells as text, one a row.
struct TextColumn {
  std::string heading;
  std::string unit;  // stands under the heading; may be empty
  std::vector<std::string> cells;
  bool numeric = true;  // aligned at the decimal point, else at the left
  bool key = false;     // tells the rows apart
};

// The columns side by side under their headings. Where they do not fit `width` they follow in
// groups, one below the other, the leading key columns repeated in each while these leave room. A
// column wider than the terminal stands alone and is left whole. Ends with a newline.
std::string text_table(const std::vector<TextColumn>& columns, int width, bool color);

}  // namespace attnlab
