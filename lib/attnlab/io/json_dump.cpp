#include <algorithm>
#include <cmath>

#include "attnlab/io/json.h"
#include "attnlab/io/number_text.h"

namespace attnlab {
namespace {

constexpr std::size_t kStep = 2;         // of indentation
constexpr std::size_t kLineWidth = 100;  // of a line of texts

void append_float(std::string& out, double value) {
  if (std::isfinite(value)) {
    append_number(out, value);
  } else {
    out += '"';
    out += non_finite_name(value);
    out += '"';
  }
}

void append_text(std::string& out, const std::string& text) {
  // Replacing malformed UTF-8 (file names may be) keeps the output JSON.
  out += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_scalar(std::string& out, const Json& value) {
  switch (value.type()) {
    case Json::value_t::string:
      return append_text(out, value.get_ref<const std::string&>());
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case Json::value_t::number_integer:
      return append_number(out, value.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return append_number(out, value.get<std::uint64_t>());
    case Json::value_t::number_float:
      return append_float(out, value.get<double>());
    default:
      out += "null";
  }
}

void start_line(std::string& out, std::size_t indent) {
  out += '\n';
  out.append(indent, ' ');
}

bool has_text(const Json& array) {
  return std::any_of(array.begin(), array.end(), [](const Json& value) {
    return value.is_string() && !parse_non_finite(value.get_ref<const std::string&>());
  });
}

void append_value(std::string& out, const Json& value, std::size_t indent);

void append_line(std::string& out, const Json& array) {
  out += '[';
  const char* separator = "";
  for (const Json& element : array) {
    out += separator;
    append_scalar(out, element);
    separator = ", ";
  }
  out += ']';
}

void append_lines(std::string& out, const Json& array, std::size_t indent) {
  out += '[';
  const char* separator = "";
  for (const Json& element : array) {
    out += separator;
    start_line(out, indent + kStep);
    append_value(out, element, indent + kStep);
    separator = ",";
  }
  start_line(out, indent);
  out += ']';
}

void append_array(std::string& out, const Json& array, std::size_t indent) {
  const bool flat = std::none_of(array.begin(), array.end(),
                                 [](const Json& element) { return element.is_structured(); });
  if (!flat) return append_lines(out, array, indent);
  const std::size_t start = out.size();
  append_line(out, array);
  // Numbers stay on one line whatever its length, texts do not.
  if (indent + out.size() - start > kLineWidth && has_text(array)) {
    out.resize(start);
    append_lines(out, array, indent);
  }
}

void append_object(std::string& out, const Json& object, std::size_t indent) {
  if (object.empty()) {
    out += "{}";
    return;
  }
  out += '{';
  const char* separator = "";
  for (const auto& [key, value] : object.items()) {
    out += separator;
    start_line(out, indent + kStep);
    append_text(out, key);
    out += ": ";
    append_value(out, value, indent + kStep);
    separator = ",";
  }
  start_line(out, indent);
  out += '}';
}

void append_value(std::string& out, const Json& value, std::size_t indent) {
  if (value.is_object()) return append_object(out, value, indent);
  if (value.is_array()) return append_array(out, value, indent);
  append_scalar(out, value);
}

template <class T>
void append_element(std::string& out, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_unsigned_v<T>) {
    append_number(out, std::uint64_t{value});
  } else if constexpr (std::is_integral_v<T>) {
    append_number(out, std::int64_t{value});
  } else {
    append_float(out, convert_element<double>(value));
  }
}

// One array of the tensor, on one line when it holds the elements themselves.
template <class T>
void append_axis(std::string& out, const Tensor<T>& tensor, int axis, Index& next,
                 const std::function<void(std::string&)>& row_done) {
  if (axis == tensor.shape().rank()) return append_element<T>(out, tensor[next++]);
  const bool line = axis + 1 == tensor.shape().rank();
  const Index length = tensor.shape()[axis];
  out += '[';
  for (Index i = 0; i < length; ++i) {
    if (i > 0) out += line ? ", " : ",";
    if (!line) start_line(out, kStep * static_cast<std::size_t>(axis + 1));
    append_axis(out, tensor, axis + 1, next, row_done);
    if (!line) row_done(out);
  }
  if (!line && length > 0) start_line(out, kStep * static_cast<std::size_t>(axis));
  out += ']';
}

}  // namespace

std::string dump_json(const Json& value) {
  std::string out;
  append_value(out, value, 0);
  return out;
}

void append_tensor_json(std::string& out, const AnyTensor& tensor,
                        const std::function<void(std::string&)>& row_done) {
  tensor.visit([&](const auto& t) {
    Index next = 0;
    append_axis(out, t, 0, next, row_done);
  });
}

}  // namespace attnlab
