#include "render/heat_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "render/axes.h"
#include "render/elide.h"
#include "render/palette.h"
#include "render/rounded_text.h"
#include "render/text_table.h"
#include "render/text_width.h"

namespace attnlab {
namespace {

constexpr Index kMostRows = 48;
constexpr Index kMostMatrices = 8;
constexpr int kMostCellWidth = 10;
constexpr int kMostHeaderLines = 12;
constexpr std::string_view kDots = "...";

// Where the finite elements lie, and which others there are.
struct HeatScale {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  bool nan = false, plus_infinity = false, minus_infinity = false;

  explicit HeatScale(const AnyTensor& tensor) {
    tensor.visit([this](const auto& t) {
      for (const auto element : t.values()) add(convert_element<double>(element));
    });
  }

  void add(double value) {
    if (std::isnan(value)) {
      nan = true;
    } else if (std::isinf(value)) {
      (value > 0 ? plus_infinity : minus_infinity) = true;
    } else {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }

  bool empty() const { return low > high; }
  bool constant() const { return low == high; }
  bool diverging() const { return low < 0 && high > 0; }
  double limit() const { return std::max(-low, high); }

  HeatValue value(double x) const {
    if (constant()) return {0.5, false};
    if (diverging()) return {x / limit(), true};
    // Halves, since high - low may overflow.
    return {(x / 2 - low / 2) / (high / 2 - low / 2), false};
  }

  std::string cell(double x, int width, const Style& style) const {
    if (std::isnan(x)) return mark_cell("??", width, style);
    if (std::isinf(x)) return mark_cell(x > 0 ? "++" : "--", width, style);
    return heat_cell(value(x), width, style);
  }

  std::string legend(const Style& style) const {
    std::string text = "  ";
    const auto number = [&](double x) { return significant_text(x, style.digits); };
    if (empty()) {
      text += "no finite values";
    } else if (constant()) {
      text += "min = max = " + number(low) + "  " + heat_cell(value(low), 2, style);
    } else if (diverging()) {
      text += number(-limit()) + " " + heat_scale(true, style) + " " + number(limit()) +
              ", 0 in the middle; min " + number(low) + ", max " + number(high);
    } else {
      text += "min " + number(low) + " " + heat_scale(false, style) + " max " + number(high);
    }
    if (nan) text += "   " + mark_cell("??", 2, style) + " NaN";
    if (plus_infinity) text += "   " + mark_cell("++", 2, style) + " inf";
    if (minus_infinity) text += "   " + mark_cell("--", 2, style) + " -inf";
    return text + "\n";
  }
};

class HeatMap {
 public:
  HeatMap(const AnyTensor& tensor, Style style, const RowStatistics& statistics)
      : tensor_(tensor), style_(std::move(style)), scale_(tensor), statistics_(statistics) {
    const Shape& shape = tensor.shape();
    rows_in_all_ = shape.rank() >= 2 ? shape[-2] : 1;
    columns_in_all_ = shape.rank() >= 1 ? shape[-1] : 1;
    rows_ = elided(rows_in_all_, kMostRows);
    measure_row_names();
    align_statistics();
    fit_columns();
  }

  std::string text(const std::vector<std::string>& axes) const {
    std::string out;
    for (const Index matrix : elided_matrices(tensor_.shape(), kMostMatrices)) {
      if (matrix == kGap) {
        out += "  ...\n\n";
        continue;
      }
      const std::string label = matrix_label(axes, tensor_.shape(), matrix);
      if (!label.empty()) out += "  " + bold(label, style_.color) + "\n";
      append_header(out);
      for (const Index row : rows_) append_row(matrix, row, out);
      out += "\n";
    }
    return out + scale_.legend(style_);
  }

 private:
  std::string row_name(Index row) const {
    if (row == kGap) return std::string(kDots);
    return style_.row_names.empty() ? std::to_string(row)
                                    : style_.row_names[static_cast<std::size_t>(row)];
  }
  const std::string& column_name(Index column) const {
    return style_.column_names[static_cast<std::size_t>(column)];
  }
  int column_width(Index column) const {
    return column == kGap ? static_cast<int>(kDots.size()) : cell_width_;
  }

  void measure_row_names() {
    const int most = std::clamp(style_.width / 3, 3, 24);
    for (const Index row : rows_) {
      name_width_ = std::max(name_width_, display_width(clip(row_name(row), most)));
    }
  }

  void align_statistics() {
    for (std::size_t i = 0; i < statistics_.headings.size(); ++i) {
      std::vector<std::string> column;
      for (const auto& row : statistics_.cells) column.push_back(row[i]);
      column = align_decimals(column);
      const int width = std::max(display_width(statistics_.headings[i]),
                                 column.empty() ? 0 : display_width(column.front()));
      for (std::string& cell : column) cell = pad_left(cell, width);
      statistic_headings_ += "  " + pad_left(statistics_.headings[i], width);
      statistic_columns_.push_back(std::move(column));
    }
  }

  // Cells as wide as the column names where these fit, else two columns and the names upright.
  void fit_columns() {
    const Index room = style_.width - 2 - name_width_ - 1 - display_width(statistic_headings_);
    for (const std::string& name : style_.column_names) {
      cell_width_ = std::max(cell_width_, display_width(clip(name, 100)) + 1);
    }
    if (cell_width_ > kMostCellWidth || cell_width_ * columns_in_all_ > room) {
      cell_width_ = 2;
      upright_ = !style_.column_names.empty();
    }
    const Index most = cell_width_ * columns_in_all_ <= room
                           ? columns_in_all_
                           : (room - static_cast<Index>(kDots.size())) / cell_width_;
    columns_ = elided(columns_in_all_, std::max<Index>(2, most));
  }

  std::string line_start(std::string_view name) const {
    return "  " + pad_right(clip(name, name_width_), name_width_) + " ";
  }

  void append_header(std::string& out) const {
    std::vector<std::string> lines = upright_ ? upright_names() : std::vector{level_names()};
    // The statistics' headings stand on the last line, at the right of the map.
    int map_width = 0;
    for (const Index column : columns_) map_width += column_width(column);
    lines.back() = pad_right(lines.back(), map_width) + statistic_headings_;
    for (std::string& line : lines) {
      line = line_start("") + line;
      trim_end(line);
      out += line + "\n";
    }
  }

  // Names on one line; numbers at every column, or at every fifth when they would touch.
  std::string level_names() const {
    std::string line;
    int end = 0;
    const bool every = columns_in_all_ <= 10;
    for (const Index column : columns_) {
      line = pad_right(line, end);
      end += column_width(column);
      if (column == kGap) {
        line += kDots;
      } else if (!style_.column_names.empty()) {
        line += clip(column_name(column), 100);
      } else if ((every || column % 5 == 0) && display_width(line) <= end - column_width(column)) {
        line += std::to_string(column);
      }
    }
    return line;
  }

  std::vector<std::string> upright_names() const {
    std::vector<std::vector<std::string>> names;
    std::size_t height = 1;
    for (const Index column : columns_) {
      auto letters =
          column == kGap ? std::vector<std::string>{} : glyphs(clip(column_name(column), 100));
      if (letters.size() > kMostHeaderLines) {
        letters.resize(kMostHeaderLines);
        letters.back() = "…";
      }
      height = std::max(height, letters.size());
      names.push_back(std::move(letters));
    }
    std::vector<std::string> lines(height);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::size_t above = height - names[i].size();
      for (std::size_t line = 0; line < height; ++line) {
        lines[line] +=
            pad_right(line < above ? "" : names[i][line - above], column_width(columns_[i]));
      }
    }
    return lines;
  }

  void append_row(Index matrix, Index row, std::string& out) const {
    if (row == kGap) {
      out += "  " + std::string(kDots) + "\n";
      return;
    }
    std::string line = line_start(row_name(row));
    const Index first = (matrix * rows_in_all_ + row) * columns_in_all_;
    for (const Index column : columns_) {
      line += column == kGap ? std::string(kDots)
                             : scale_.cell(tensor_.at(first + column), cell_width_, style_);
    }
    for (const auto& column : statistic_columns_) {
      line += "  " + column[static_cast<std::size_t>(matrix * rows_in_all_ + row)];
    }
    trim_end(line);
    out += line + "\n";
  }

  const AnyTensor& tensor_;
  Style style_;
  HeatScale scale_;
  const RowStatistics& statistics_;
  Index rows_in_all_ = 0, columns_in_all_ = 0;
  std::vector<Index> rows_, columns_;
  std::string statistic_headings_;
  std::vector<std::vector<std::string>> statistic_columns_;  // [heading][row], aligned
  int name_width_ = 0;
  int cell_width_ = 2;
  bool upright_ = false;
};

}  // namespace

std::string heat_map(const AnyTensor& matrix, std::string_view declared, const Style& style,
                     const RowStatistics& statistics) {
  if (matrix.size() == 0) return "  (no elements)\n";
  const Shape& shape = matrix.shape();
  return HeatMap(matrix, matrix_style(style, declared, shape), statistics)
      .text(axis_names(declared, shape.rank()));
}

std::string heat_map(const AnyTensor& matrix, const Style& style) {
  return heat_map(matrix, "", style);
}

}  // namespace attnlab
