#pragma once

#include <string>

#include "render/style.h"

namespace attnlab {

// How a heat map shows a value: its place on the scale, 0 (low) to 1 (high), or -1 to 1 on a scale
// with 0 in the middle.
struct HeatValue {
  double place = 0;
  bool diverging = false;
};

// One cell of `width` columns. In colour the background goes from pale grey to deep red, on a
// diverging scale from deep blue over grey to red. Without colour it is filled with shade, a
// negative value marked by a minus.
std::string heat_cell(const HeatValue& value, int width, const Style& style);

// A cell for what has no place on the scale, with a text of its own ("??").
std::string mark_cell(const std::string& mark, int width, const Style& style);

// The scale itself, low to high, for the legend.
std::string heat_scale(bool diverging, const Style& style);

}  // namespace attnlab
