#include "render/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "render/text_width.h"

namespace attnlab {
namespace {

struct Rgb {
  int red, green, blue;
};

// Lightness falls evenly and stays between a black and a white terminal, and colour grows with the
// value: pale grey recedes on both, deep red and blue stand out on both.
constexpr std::array<Rgb, 5> kReds = {
    {{205, 208, 212}, {226, 190, 160}, {235, 150, 95}, {226, 100, 45}, {190, 35, 20}}};
constexpr std::array<Rgb, 5> kBlues = {
    {{205, 208, 212}, {160, 190, 220}, {105, 155, 210}, {55, 110, 190}, {25, 65, 155}}};
// The same in the 256 colours of xterm.
constexpr std::array<int, 6> kReds256 = {252, 180, 173, 166, 160, 124};
constexpr std::array<int, 6> kBlues256 = {252, 110, 74, 68, 26, 19};

constexpr std::array<const char*, 5> kShades = {" ", "░", "▒", "▓", "█"};

template <std::size_t N>
std::size_t step(double place) {
  const double scaled = std::clamp(place, 0.0, 1.0) * static_cast<double>(N);
  return std::min(N - 1, static_cast<std::size_t>(scaled));
}

Rgb blend(std::span<const Rgb> ramp, double place) {
  const double at = std::clamp(place, 0.0, 1.0) * static_cast<double>(ramp.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), ramp.size() - 2);
  const double share = at - static_cast<double>(low);
  const auto mix = [share](int a, int b) {
    return static_cast<int>(std::lround(a + share * (b - a)));
  };
  const Rgb a = ramp[low], b = ramp[low + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

std::string background(const HeatValue& value, const Style& style) {
  const bool blue = value.diverging && value.place < 0;
  const double place = std::abs(value.place);
  if (!style.true_color) {
    const std::array<int, 6>& ramp = blue ? kBlues256 : kReds256;
    return fmt::format("\x1b[48;5;{}m", ramp[step<6>(place)]);
  }
  const Rgb color = blend(blue ? kBlues : kReds, place);
  return fmt::format("\x1b[48;2;{};{};{}m", color.red, color.green, color.blue);
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

}  // namespace

std::string heat_cell(const HeatValue& value, int width, const Style& style) {
  if (style.color) {
    return background(value, style) + repeated(" ", width) + "\x1b[0m";
  }
  const std::size_t shade = step<kShades.size()>(std::abs(value.place));
  const bool minus = value.diverging && value.place < 0 && shade > 0;
  std::string cell = repeated(kShades[shade], minus ? width - 1 : width);
  if (minus) cell.insert(cell.begin(), '-');
  return cell;
}

std::string mark_cell(const std::string& mark, int width, const Style& style) {
  const std::string text = pad_right(mark, width);
  return style.color ? "\x1b[48;5;16;38;5;231m" + text + "\x1b[0m" : text;
}

std::string heat_scale(bool diverging, const Style& style) {
  const int cells = style.color ? 12 : diverging ? 9 : 5;
  // In colour the cells show where the scale begins and ends, pale shades do not.
  std::string out = style.color ? "" : "[";
  for (int i = 0; i < cells; ++i) {
    const double place = (i + 0.5) / cells;
    out += heat_cell({diverging ? 2 * place - 1 : place, diverging}, 2, style);
  }
  if (!style.color) out += ']';
  return out;
}

}  // namespace attnlab
