#include "attnlab/io/result_file.h"

#include <cmath>

#include "attnlab/io/atomic_file.h"
#include "attnlab/io/json.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_number(const Json& value) {
  return value.is_number() ||
         (value.is_string() && (value == "NaN" || value == "Infinity" || value == "-Infinity"));
}

// The numeric columns of a list of row objects.
void append_columns(const Json& rows, std::string_view source, std::vector<NamedTensor>& out) {
  if (rows.empty() || !rows[0].is_object()) return;
  for (const auto& [name, first] : rows[0].items()) {
    Tensor<double> column(Shape{static_cast<Index>(rows.size())}, std::nan(""));
    bool numeric = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto cell = rows[i].find(name);
      if (cell == rows[i].end() || !is_number(*cell)) continue;
      column[static_cast<Index>(i)] = tensor_from_json(*cell, source, name).at(0);
      numeric = true;
    }
    if (numeric) out.push_back({name, std::move(column)});
  }
}

std::vector<NamedTensor> result_tensors(const Json& result, std::string_view source) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, value] : result.items()) {
    if (name == "rows" && value.is_array()) {
      append_columns(value, source, tensors);
    } else if (is_number(value) || (value.is_array() && !value.empty())) {
      tensors.push_back({name, tensor_from_json(value, source, name)});
    }
  }
  return tensors;
}

}  // namespace

std::vector<NamedTensor> read_result(const TensorSource& source, std::string_view field,
                                     std::vector<std::string>& notes) {
  if (ends_with(source.path, ".json")) {
    const Json json = parse_json(read_file(source.path, field), source.path);
    if (json.is_object() && json.contains("result") && json["result"].is_object()) {
      return result_tensors(json["result"], source.path);
    }
    return {{"tensor", tensor_from_json(json, source.path, "")}};
  }
  if (ends_with(source.path, ".safetensors")) {
    const SafetensorsFile file(source.path, field);
    std::vector<NamedTensor> tensors;
    for (const TensorInfo& info : file.tensors()) {
      tensors.push_back({info.name, file.read(info.name, notes)});
    }
    return tensors;
  }
  return {{"tensor", read_tensor(source, field, notes)}};
}

}  // namespace attnlab
