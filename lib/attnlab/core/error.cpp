#include "attnlab/core/error.h"

#include <algorithm>
#include <numeric>

namespace attnlab {
namespace {

std::string message(std::string_view source, std::string_view field, std::string_view value,
                    std::string_view rule) {
  std::string text;
  for (std::string_view part : {source, field}) {
    if (!part.empty()) text += printable(part) + ": ";
  }
  if (!value.empty()) text += "got " + printable(value, 80) + ", ";
  return text + printable(rule, 1000);
}

// Bytes of the well-formed UTF-8 sequence at the start of `text`, 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies above U+10FFFF show in the second byte.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

// Unicode's controls of writing direction (U+202A to U+202E, U+2066 to U+2069), with which a line
// can be made to read as another.
bool is_bidirectional(std::string_view character) {
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(character[2]);
  return (character[1] == '\x80' && last >= 0xAA && last <= 0xAE) ||
         (character[1] == '\x81' && last >= 0xA6 && last <= 0xA9);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// The edit distance, or more than any when the two have not a letter in common.
std::size_t distance_if_near(std::string_view a, std::string_view b) {
  const std::size_t distance = edit_distance(a, b);
  return distance < std::max(a.size(), b.size()) ? distance : std::string_view::npos;
}

// Without the dashes and underscores, which are the easiest to forget.
std::string letters_of(std::string_view name) {
  std::string letters(name);
  std::erase_if(letters, [](char c) { return c == '-' || c == '_'; });
  return letters;
}

}  // namespace

InputError::InputError(std::string_view source, std::string_view field, std::string_view value,
                       std::string_view rule)
    : std::runtime_error(message(source, field, value, rule)),
      source_(source),
      field_(field),
      value_(value),
      rule_(rule) {}

std::string printable(std::string_view text, std::size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto lead = static_cast<unsigned char>(text[0]);
    // C1 control characters (U+0080 to U+009F) steer terminals as the C0 ones do.
    const bool control =
        lead < 0x20 || lead == 0x7F || is_bidirectional(text.substr(0, length)) ||
        (lead == 0xC2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xA0);
    const std::size_t step = std::max<std::size_t>(length, 1);
    const bool escaped = length == 0 || control;
    if (out.size() + (escaped ? 4 * step : step) > limit) return out + "...";
    if (escaped) {
      for (const char c : text.substr(0, step)) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      }
    } else {
      out += text.substr(0, step);
    }
    text.remove_prefix(step);
  }
  return out;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  name = name.substr(0, 64);  // a longer one is no slip of the finger
  // A third of the letters may be wrong: "sclae" finds "scale", "foo" finds nothing.
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : names) {
    const std::size_t distance =
        std::min(distance_if_near(name, candidate),
                 distance_if_near(letters_of(name), letters_of(candidate)));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace attnlab
