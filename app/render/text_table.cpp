#include "render/text_table.h"

#include <algorithm>

#include "render/text_width.h"

namespace attnlab {
namespace {

constexpr int kColumnGap = 2;

bool has_digit(const std::string& text) {
  return text.find_first_of("0123456789") != std::string::npos;
}

int point(const std::string& number) {
  return static_cast<int>(std::min(number.find_first_of(".e"), number.size()));
}

// A column with every line padded to one width: heading, unit, cells.
struct Block {
  std::vector<std::string> lines;
  int width = 0;
  bool key = false;
};

constexpr std::size_t kUnitLine = 1;

Block block_of(const TextColumn& column) {
  Block block;
  block.key = column.key;
  block.lines = {column.heading, column.unit};
  const auto cells = column.numeric ? align_decimals(column.cells) : column.cells;
  block.lines.insert(block.lines.end(), cells.begin(), cells.end());
  for (const std::string& line : block.lines) {
    block.width = std::max(block.width, display_width(line));
  }
  for (std::string& line : block.lines) {
    line = column.numeric ? pad_left(line, block.width) : pad_right(line, block.width);
  }
  return block;
}

bool has_units(const std::vector<const Block*>& group) {
  return std::any_of(group.begin(), group.end(), [](const Block* block) {
    return block->lines[kUnitLine].find_first_not_of(' ') != std::string::npos;
  });
}

void append_group(const std::vector<const Block*>& group, bool color, std::string& out) {
  for (std::size_t i = 0; i < group.front()->lines.size(); ++i) {
    if (i == kUnitLine && !has_units(group)) continue;
    std::string line;
    for (const Block* block : group) {
      if (!line.empty()) line += std::string(kColumnGap, ' ');
      line += block->lines[i];
    }
    trim_end(line);
    out += (i == 0 ? bold(line, color) : line) + "\n";
  }
}

}  // namespace

std::vector<std::string> align_decimals(const std::vector<std::string>& numbers) {
  int left = 0, right = 0, other = 0;
  for (const std::string& number : numbers) {
    const int width = display_width(number);
    if (!has_digit(number)) {
      other = std::max(other, width);
      continue;
    }
    left = std::max(left, point(number));
    right = std::max(right, width - point(number));
  }
  left = std::max(left, other - right);
  std::vector<std::string> aligned;
  for (const std::string& number : numbers) {
    const int end = has_digit(number) ? left - point(number) + display_width(number) : left + right;
    aligned.push_back(pad_right(pad_left(number, end), left + right));
  }
  return aligned;
}

std::string text_table(const std::vector<TextColumn>& columns, int width, bool color) {
  if (columns.empty()) return "\n";
  std::vector<Block> blocks;
  blocks.reserve(columns.size());
  for (const TextColumn& column : columns) blocks.push_back(block_of(column));

  std::vector<const Block*> keys;
  int key_width = 0;
  for (const Block& block : blocks) {
    if (!block.key) break;
    keys.push_back(&block);
    key_width += block.width + kColumnGap;
  }
  if (key_width > width / 2) keys.clear(), key_width = 0;

  std::string out;
  std::vector<const Block*> group = keys;
  int used = key_width;
  for (std::size_t i = keys.size(); i < blocks.size(); ++i) {
    if (group.size() > keys.size() && used + blocks[i].width > width) {
      append_group(group, color, out);
      out += "\n";
      group = keys;
      used = key_width;
    }
    group.push_back(&blocks[i]);
    used += blocks[i].width + kColumnGap;
  }
  append_group(group, color, out);
  return out;
}

}  // namespace attnlab
