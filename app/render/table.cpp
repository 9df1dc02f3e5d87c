#include <algorithm>

#include "render/blocks.h"
#include "render/report.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

// "weights = softmax(masked_scores)   [2, 5, 5] float32"
std::string matrix_heading(const ResultRef& result, const AnyTensor& matrix) {
  std::string text(result.name);
  if (!result.formula.empty()) text += " = " + std::string(result.formula);
  return text + "   " + shape_text(matrix);
}

std::string matrix_block(const ResultRef& result, const AnyTensor& matrix, const Style& style) {
  return bold(matrix_heading(result, matrix), style.color) + "\n" +
         matrix_text(matrix, result.shape, style);
}

}  // namespace

std::string render_table(const Report& report, const std::vector<std::string>& shown,
                         const Style& style) {
  std::vector<std::string> blocks;
  std::vector<ResultRef> scalars;
  const auto flush_scalars = [&] {
    if (!scalars.empty()) blocks.push_back(scalar_block(scalars, style));
    scalars.clear();
  };
  for (const ResultRef& result : report.results) {
    const bool hidden =
        result.is_matrix() && std::find(shown.begin(), shown.end(), result.name) == shown.end();
    if (hidden) continue;
    if (is_scalar(result)) {
      scalars.push_back(result);
      continue;
    }
    const auto* rows = std::get_if<RowsRef>(&result.value);
    if (rows != nullptr && rows->count == 0) continue;
    flush_scalars();
    if (rows != nullptr && rows->is_object) {
      blocks.push_back(bold(result.name, style.color) + "\n" + scalar_block(rows->row(0), style));
      continue;
    }
    blocks.push_back(rows != nullptr ? rows_block(result, *rows, style)
                                     : matrix_block(result, *result.matrix(), style));
  }
  flush_scalars();
  std::string text;
  for (const std::string& block : blocks) text += (text.empty() ? "" : "\n") + block;
  return text;
}

}  // namespace attnlab
