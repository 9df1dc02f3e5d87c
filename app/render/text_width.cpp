#include "render/text_width.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "attnlab/core/error.h"
#include "render/unicode_ranges.h"

namespace attnlab {
namespace {

struct CodePoint {
  std::uint32_t value;
  std::size_t bytes;
};

// The code point at the start of `text`. Malformed bytes count as one character each.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length == 1 || lead > 0xF4 || length > text.size()) return {lead, 1};
  std::uint32_t value = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {lead, 1};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  return {value, length};
}

template <std::size_t N>
bool contains(const CodeRange (&ranges)[N], std::uint32_t code) {
  const auto* range = std::lower_bound(std::begin(ranges), std::end(ranges), code,
                                       [](CodeRange r, std::uint32_t c) { return r.last < c; });
  return range != std::end(ranges) && range->first <= code;
}

int columns(std::uint32_t code) {
  if (code < 0x300) return 1;
  if (contains(kZeroWidth, code)) return 0;
  return contains(kDoubleWidth, code) ? 2 : 1;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const CodePoint code = decode(text);
    width += columns(code.value);
    text.remove_prefix(code.bytes);
  }
  return width;
}

std::vector<std::string> glyphs(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const CodePoint code = decode(text);
    const std::string_view bytes = text.substr(0, code.bytes);
    if (columns(code.value) == 0 && !out.empty()) {
      out.back() += bytes;
    } else {
      out.emplace_back(bytes);
    }
    text.remove_prefix(code.bytes);
  }
  return out;
}

std::string clip(std::string_view text, int width) {
  std::string clean = printable(text, 1000);
  if (display_width(clean) <= width) return clean;
  std::string out;
  int used = 1;  // the ellipsis
  for (const std::string& glyph : glyphs(clean)) {
    used += display_width(glyph);
    if (used > width) break;
    out += glyph;
  }
  return out + "…";
}

std::string pad_right(std::string_view text, int width) {
  const int missing = std::max(0, width - display_width(text));
  return std::string(text) + std::string(static_cast<std::size_t>(missing), ' ');
}

std::string pad_left(std::string_view text, int width) {
  const int missing = std::max(0, width - display_width(text));
  return std::string(static_cast<std::size_t>(missing), ' ') + std::string(text);
}

void trim_end(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::string bold(std::string_view text, bool color) {
  return color ? "\x1b[1m" + std::string(text) + "\x1b[0m" : std::string(text);
}

}  // namespace attnlab
