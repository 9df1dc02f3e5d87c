#include "render/blocks.h"

#include <algorithm>

#include "render/cells.h"
#include "render/text_width.h"

namespace attnlab {

std::string shape_text(const AnyTensor& matrix) {
  return matrix.shape().str() + " " + std::string(dtype_name(matrix.dtype()));
}

std::string scalar_block(const std::vector<ResultRef>& scalars, const Style& style) {
  int width = 0;
  for (const ResultRef& scalar : scalars) width = std::max(width, display_width(scalar.name));
  std::string text;
  for (const ResultRef& scalar : scalars) {
    text += pad_right(scalar.name, width);
    text += "  ";
    text += table_cell(scalar.value, style.digits);
    if (!scalar.unit.empty()) {
      text += ' ';
      text += scalar.unit;
    }
    text += '\n';
  }
  return text;
}

}  // namespace attnlab
