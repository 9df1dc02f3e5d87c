#include "render/axes.h"

#include <algorithm>

namespace attnlab {
namespace {

std::vector<std::string> parse_axes(std::string_view declared) {
  std::vector<std::string> axes;
  std::string axis;
  for (const char c : declared) {
    if (c == '[' || c == ' ') continue;
    if (c != ',' && c != ']') {
      axis += c;
    } else if (!axis.empty()) {
      axes.push_back(std::move(axis));
      axis.clear();
    }
  }
  return axes;
}

std::string one_of(const std::string& axis) {
  if (axis == "heads") return "head";
  if (axis == "kv_heads") return "key/value head";
  return axis.empty() ? "matrix" : axis;
}

}  // namespace

std::vector<std::string> axis_names(std::string_view declared, int rank) {
  static constexpr const char* kDefaults[] = {"batch", "heads", "", ""};
  const std::vector<std::string> known = parse_axes(declared);
  std::vector<std::string> names(static_cast<std::size_t>(rank));
  for (std::size_t from_last = 1; from_last <= names.size(); ++from_last) {
    std::string& name = names[names.size() - from_last];
    if (known.empty()) {
      name = kDefaults[4 - from_last];
    } else if (from_last <= known.size() && known[known.size() - from_last] != "..") {
      name = known[known.size() - from_last];
    } else if (known.front() == "..") {
      name = "batch";
    }
  }
  return names;
}

Style matrix_style(Style style, std::string_view declared, const Shape& shape) {
  const std::vector<std::string> axes = axis_names(declared, shape.rank());
  const std::vector<std::string> queries = std::move(style.row_names);
  const std::vector<std::string> keys = std::move(style.column_names);
  const auto names_of = [&](int axis,
                            const std::vector<std::string>& otherwise) -> std::vector<std::string> {
    if (-axis > shape.rank()) return {};
    const std::string& name = axes[axes.size() - static_cast<std::size_t>(-axis)];
    const bool of_queries = name == "n" || name == "n_target";
    const bool of_keys = name == "m" || name == "n_source";
    if (!of_queries && !of_keys && !name.empty()) return {};
    const auto& names = of_queries ? queries : of_keys ? keys : otherwise;
    return std::ssize(names) == shape[axis] ? names : std::vector<std::string>{};
  };
  style.row_names = names_of(-2, queries);
  style.column_names = names_of(-1, keys);
  return style;
}

std::string matrix_label(const std::vector<std::string>& axes, const Shape& shape, Index index) {
  std::string label;
  for (int axis = shape.rank() - 3; axis >= 0; --axis) {
    const Index length = shape[axis];
    if (length > 1) {
      label = one_of(axes[static_cast<std::size_t>(axis)]) + " " + std::to_string(index % length) +
              (label.empty() ? "" : ", ") + label;
    }
    index /= std::max<Index>(length, 1);
  }
  return label;
}

}  // namespace attnlab
