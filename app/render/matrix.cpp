#include "render/matrix.h"

#include <optional>

#include "render/axes.h"
#include "render/elide.h"
#include "render/rounded_text.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

constexpr Index kSummarize = 1000;  // elements; NumPy's threshold
constexpr Index kEdges = 6;         // three at either end, NumPy's edgeitems
constexpr Index kManyMatrices = 16;
constexpr int kIndent = 2;
constexpr int kMostNameColumns = 16;
constexpr std::string_view kDots = "...";

// The last two axes; a vector is one row, a number one element.
struct Extent {
  Index rows, columns;
};

Extent extent_of(const Shape& shape) {
  return {shape.rank() >= 2 ? shape[-2] : 1, shape.rank() >= 1 ? shape[-1] : 1};
}

class MatrixWriter {
 public:
  MatrixWriter(const AnyTensor& tensor, Style style)
      : tensor_(tensor), style_(std::move(style)), extent_(extent_of(tensor.shape())) {
    const bool all = tensor.size() <= kSummarize;
    const bool all_matrices = all && tensor.shape().matrices() <= kManyMatrices;
    matrices_ = elided_matrices(tensor.shape(), all_matrices ? kManyMatrices : kEdges);
    rows_ = elided(extent_.rows, all ? extent_.rows : kEdges);
    // No column takes less than a digit and the space before it.
    const Index most = std::max<Index>(2, style_.width / 3 + 1);
    columns_ = elided(extent_.columns, std::min(all ? extent_.columns : kEdges, most));
    format_.emplace(tensor, shown_elements(), style_.digits);
    measure_row_names();
    fit_columns();
  }

  std::string text(const std::vector<std::string>& axes) const {
    std::string out;
    for (const Index matrix : matrices_) {
      if (matrix == kGap) {
        out += "\n  ...\n";
        continue;
      }
      const std::string label = matrix_label(axes, tensor_.shape(), matrix);
      if (!label.empty()) out += (out.empty() ? "  " : "\n  ") + label + "\n";
      append_matrix(matrix, out);
    }
    return out;
  }

 private:
  std::vector<Index> shown_elements() const {
    std::vector<Index> elements;
    for (const Index matrix : matrices_) {
      for (const Index row : rows_) {
        for (const Index column : columns_) {
          if (matrix != kGap && row != kGap && column != kGap) {
            elements.push_back(element(matrix, row, column));
          }
        }
      }
    }
    return elements;
  }

  Index element(Index matrix, Index row, Index column) const {
    return (matrix * extent_.rows + row) * extent_.columns + column;
  }

  void measure_row_names() {
    if (style_.row_names.empty()) return;
    const int most = std::clamp(style_.width / 3, 1, 24);
    for (const Index row : rows_) {
      if (row != kGap) row_name_width_ = std::max(row_name_width_, name_width(row_name(row), most));
    }
  }

  static int name_width(const std::string& name, int most) {
    return display_width(clip(name, most));
  }
  const std::string& row_name(Index row) const {
    return style_.row_names[static_cast<std::size_t>(row)];
  }
  const std::string& column_name(Index column) const {
    return style_.column_names[static_cast<std::size_t>(column)];
  }

  int column_width(Index column) const {
    if (column == kGap) return static_cast<int>(kDots.size());
    if (style_.column_names.empty()) return format_->width();
    return std::max(format_->width(), name_width(column_name(column), kMostNameColumns));
  }

  int line_width(const std::vector<Index>& columns) const {
    int width = row_name_width_ > 0 ? kIndent + row_name_width_ : 0;
    for (const Index column : columns) width += 2 + column_width(column);
    return width;
  }

  // Leaves out as many columns as the terminal has no room for; two always stay, and lines that
  // are too long even so are left to the terminal.
  void fit_columns() {
    if (line_width(columns_) <= style_.width) return;
    for (Index kept = static_cast<Index>(columns_.size()) - 1; kept >= 2; --kept) {
      if (extent_.columns > kept) columns_ = elided(extent_.columns, kept);
      if (line_width(columns_) <= style_.width) return;
    }
  }

  std::string line_start(std::string_view name) const {
    return row_name_width_ == 0 ? ""
                                : "  " + pad_right(clip(name, row_name_width_), row_name_width_);
  }

  void append_matrix(Index matrix, std::string& out) const {
    if (!style_.column_names.empty()) append_header(out);
    for (const Index row : rows_) {
      if (row == kGap) {
        out += "  ...\n";
        continue;
      }
      std::string line = line_start(style_.row_names.empty() ? "" : row_name(row));
      for (const Index column : columns_) {
        const std::string cell =
            column == kGap ? std::string(kDots) : format_->cell(element(matrix, row, column));
        line += "  " + pad_left(cell, column_width(column));
      }
      trim_end(line);
      out += line + "\n";
    }
  }

  void append_header(std::string& out) const {
    std::string line = line_start("");
    for (const Index column : columns_) {
      const int width = column_width(column);
      line +=
          "  " +
          pad_left(column == kGap ? std::string(kDots) : clip(column_name(column), width), width);
    }
    trim_end(line);
    out += line + "\n";
  }

  const AnyTensor& tensor_;
  Style style_;
  Extent extent_;
  std::vector<Index> matrices_, rows_, columns_;
  std::optional<MatrixFormat> format_;
  int row_name_width_ = 0;
};

}  // namespace

std::string matrix_text(const AnyTensor& tensor, std::string_view declared, const Style& style) {
  if (tensor.size() == 0) return "  (no elements)\n";
  const Shape& shape = tensor.shape();
  return MatrixWriter(tensor, matrix_style(style, declared, shape))
      .text(axis_names(declared, shape.rank()));
}

std::string matrix_text(const AnyTensor& tensor, const Style& style) {
  return matrix_text(tensor, "", style);
}

}  // namespace attnlab
