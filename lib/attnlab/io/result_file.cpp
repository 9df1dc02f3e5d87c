#include "attnlab/io/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "attnlab/io/atomic_file.h"
#include "attnlab/io/dtype_text.h"
#include "attnlab/io/json.h"
#include "attnlab/io/number_text.h"
#include "attnlab/io/tensor_archive.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

bool is_number(const Json& value) {
  return value.is_number() ||
         (value.is_string() && parse_non_finite(value.get_ref<const std::string&>()));
}

// Numbers or booleans all through, which make a tensor.
bool is_tensor(const Json& value) {
  if (!value.is_array()) return is_number(value) || value.is_boolean();
  return !value.empty() && std::all_of(value.begin(), value.end(), is_tensor);
}

// Cells of any kind one after the other, lists taken apart.
class Cells {
 public:
  explicit Cells(std::string_view source) : source_(source) {}

  void add(const Json& cell) {
    if (cell.is_array() && !cell.empty()) {
      place_.push_back(0);
      for (const Json& inner : cell) {
        add(inner);
        ++place_.back();
      }
      place_.pop_back();
      return;
    }
    const bool number = is_number(cell);
    numbers_.push_back(number ? tensor_from_json(cell, source_, "").at(0)
                              : std::numeric_limits<double>::quiet_NaN());
    texts_.push_back(number ? "" : cell.dump());
    any_text_ = any_text_ || !number;
    places_.push_back(fmt::format("[{}]", fmt::join(place_, ", ")));
  }

  ResultEntry entry(std::string name, bool scalar = false) && {
    Tensor<double> tensor(scalar ? Shape{} : Shape{static_cast<Index>(numbers_.size())});
    std::copy(numbers_.begin(), numbers_.end(), tensor.data());
    if (!any_text_) texts_.clear();
    if (scalar) places_.clear();
    return {std::move(name), std::move(tensor), std::move(texts_), std::move(places_)};
  }

 private:
  std::string_view source_;
  std::vector<std::size_t> place_;
  std::vector<double> numbers_;
  std::vector<std::string> texts_, places_;
  bool any_text_ = false;
};

bool is_rows(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& row) { return row.is_object(); });
}

// The columns of a list of row objects; a cell that a row does not have is null.
void append_columns(const Json& rows, std::string_view source, const std::string& prefix,
                    std::vector<ResultEntry>& out) {
  std::vector<std::string> names;
  for (const Json& row : rows) {
    for (const auto& [name, cell] : row.items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    Json column = Json::array();
    for (const Json& row : rows) column.push_back(row.contains(name) ? row[name] : Json());
    Cells cells(source);
    cells.add(column);
    out.push_back(std::move(cells).entry(prefix + name));
  }
}

void append_entries(const Json& result, std::string_view source, const std::string& prefix,
                    std::vector<ResultEntry>& out) {
  for (const auto& [key, value] : result.items()) {
    const std::string name = prefix + key;
    if (is_rows(value)) {
      append_columns(value, source, key == "rows" ? prefix : name + ".", out);
    } else if (value.is_object()) {
      append_entries(value, source, name + ".", out);
    } else if (is_tensor(value)) {
      out.push_back({name, tensor_from_json(value, source, name), {}, {}});
    } else if (key != "rows" || !value.empty()) {
      Cells cells(source);
      cells.add(value);
      out.push_back(std::move(cells).entry(name, /*scalar=*/!value.is_array()));
    }
  }
}

// What a result says it was computed in: "dtype" beside it, or an option that is no "auto".
std::optional<DType> computed_in(const Json& document) {
  const auto named = [](const Json& object) -> std::optional<DType> {
    const auto found = object.find("dtype");
    if (found == object.end() || !found->is_string()) return std::nullopt;
    return float_of_name(found->get_ref<const std::string&>());
  };
  if (const auto dtype = named(document)) return dtype;
  const auto options = document.find("options");
  if (options == document.end() || !options->is_object()) return std::nullopt;
  return named(*options);
}

// Scalars and columns of whole numbers count something.
bool counts(const ResultEntry& entry) {
  const bool matrix = entry.places.empty() && entry.tensor.shape().rank() > 0;
  if (matrix) return false;
  for (Index i = 0; i < entry.tensor.size(); ++i) {
    const double value = entry.tensor.at(i);
    if (std::isfinite(value) && value != std::floor(value)) return false;
  }
  return true;
}

void append_result(const Json& document, std::string_view source, std::vector<ResultEntry>& out) {
  append_entries(document["result"], source, "", out);
  const std::optional<DType> dtype = computed_in(document);
  for (ResultEntry& entry : out) {
    if (entry.tensor.dtype() == DType::float64 && !counts(entry)) entry.computed_in = dtype;
  }
}

}  // namespace

std::vector<ResultEntry> read_result(const TensorSource& source, std::string_view field,
                                     std::vector<std::string>& notes) {
  const std::optional<TensorFormat> format =
      source.values ? std::nullopt : format_of_name(source.path);
  std::vector<ResultEntry> entries;
  if (format == TensorFormat::json) {
    const Json json = parse_json(read_file(source.path, field), source.path);
    if (json.is_object() && json.contains("result") && json["result"].is_object()) {
      append_result(json, source.path, entries);
    } else if (json.is_object()) {
      append_entries(json, source.path, "", entries);
    } else {
      entries.push_back({"tensor", tensor_from_json(json, source.path, ""), {}, {}});
    }
  } else if (format == TensorFormat::safetensors || format == TensorFormat::npz) {
    const auto file = open_archive(InputFile(source.path, field), *format);
    for (const std::string& name : file->names()) {
      entries.push_back({name, file->read(name, notes), {}, {}});
    }
  } else {
    entries.push_back({"tensor", read_tensor(source, field, notes), {}, {}});
  }
  return entries;
}

}  // namespace attnlab
