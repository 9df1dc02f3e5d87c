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

// ColorBrewer's Blues and PuOr (Brewer, 2002) without their ends, which are lost on a white or a
// black terminal.
constexpr std::array<Rgb, 7> kBlues = {{{222, 235, 247},
                                        {198, 219, 239},
                                        {158, 202, 225},
                                        {107, 174, 214},
                                        {66, 146, 198},
                                        {33, 113, 181},
                                        {8, 81, 156}}};
constexpr std::array<Rgb, 4> kOranges = {
    {{240, 240, 240}, {253, 196, 125}, {232, 139, 35}, {179, 88, 6}}};
// The same in the 256 colours of xterm, in even steps of lightness.
constexpr std::array<int, 6> kBlues256 = {254, 153, 110, 68, 26, 20};
constexpr std::array<int, 4> kOranges256 = {254, 222, 172, 130};

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
  const bool orange = value.diverging && value.place < 0;
  const double place = std::abs(value.place);
  if (!style.true_color) {
    return fmt::format("\x1b[48;5;{}m", orange ? kOranges256[step<kOranges256.size()>(place)]
                                               : kBlues256[step<kBlues256.size()>(place)]);
  }
  const Rgb color = orange ? blend(kOranges, place) : blend(std::span<const Rgb>(kBlues), place);
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
  const int cells = style.color ? 10 : diverging ? 9 : 5;
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
