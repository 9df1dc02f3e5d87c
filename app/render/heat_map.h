#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/tensor.h"
#include "render/style.h"

namespace attnlab {

// Numbers about the rows of a matrix, to stand beside them.
struct RowStatistics {
  std::vector<std::string> headings;            // "max", "entropy" ...
  std::vector<std::vector<std::string>> cells;  // [row][heading], the rows of all matrices in turn
};

// A matrix [n, m] as blocks of colour or shade under a legend with its minimum and maximum; tensors
// of rank 3 and 4 matrix by matrix on one scale. The scale goes from the minimum to the maximum of
// the finite elements, or, when these have both signs, evenly to both sides of 0. NaN (??) and the
// infinities (++ and --) have marks of their own and leave the scale alone. Rows and columns are
// named where the style has names for the axes of the `declared` shape, else numbered; the middle
// is left out where the map is wider than the terminal or longer than a screen.
std::string heat_map(const AnyTensor& matrix, std::string_view declared, const Style& style,
                     const RowStatistics& statistics = {});
std::string heat_map(const AnyTensor& matrix, const Style& style);

}  // namespace attnlab
