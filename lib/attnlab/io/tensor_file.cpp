#include "attnlab/io/tensor_file.h"

#include <algorithm>

#include "attnlab/core/error.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/csv.h"
#include "attnlab/io/json.h"
#include "attnlab/io/npy.h"
#include "attnlab/io/safetensors.h"

namespace attnlab {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

std::string joined(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i], 60);
  }
  return names.size() > kMost ? text + ", ..." : text;
}

// The object whose members a NAME chooses from: that of the results when this is a result file and
// the name does not stand at the top.
const Json& naming_object(const Json& top, std::string_view name) {
  const bool at_top = !name.empty() && top.contains(std::string(name));
  const auto result = top.find("result");
  const bool is_result_file = result != top.end() && result->is_object();
  return is_result_file && !at_top ? *result : top;
}

AnyTensor read_json_member(const Json& top, std::string_view name, const std::string& source) {
  const Json& object = naming_object(top, name);
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) {
    if (value.is_array() || value.is_number()) names.push_back(key);
  }
  std::string chosen(name);
  if (name.empty() && object.size() == 1) chosen = object.begin().key();
  if (const auto found = object.find(chosen); found != object.end()) {
    return tensor_from_json(*found, source, chosen);
  }
  const std::string list = names.empty() ? "none" : joined(names);
  if (name.empty()) {
    throw InputError(source, "", "", "holds an object: add :NAME for one of its arrays: " + list);
  }
  const std::string nearest = nearest_name(name, names);
  throw InputError(source, "", name,
                   "need one of its arrays: " + list +
                       (nearest.empty() ? "" : ", did you mean " + nearest + "?"));
}

AnyTensor read_json_tensor(const InputFile& file, std::string_view name) {
  const Json json = parse_json(file.text(), file.name());
  if (json.is_object()) return read_json_member(json, name, file.name());
  if (!name.empty()) {
    throw InputError(file.name(), "", name, "the file holds one array and no names");
  }
  return tensor_from_json(json, file.name(), "");
}

AnyTensor read_safetensor(InputFile file, std::string_view name, std::vector<std::string>& notes) {
  const SafetensorsFile tensors(std::move(file));
  if (!name.empty()) return tensors.read(name, notes);
  if (tensors.tensors().size() == 1) return tensors.read(tensors.tensors()[0].name, notes);
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors.tensors()) names.push_back(tensor.name);
  throw InputError(tensors.path(), "", "",
                   "add :NAME for one of its tensors: " + (names.empty() ? "none" : joined(names)));
}

// Hands what is written to the file piece by piece.
void write_text(AtomicFile& file, const AnyTensor& tensor, TensorFormat format) {
  std::string text;
  const auto row_done = [&](std::string& rows) {
    if (rows.size() < kBuffer) return;
    file.write(rows);
    rows.clear();
  };
  if (format == TensorFormat::json) {
    append_tensor_json(text, tensor, row_done);
    text += '\n';
  } else {
    append_csv(text, tensor, format == TensorFormat::csv ? ',' : '\t', row_done);
  }
  file.write(text);
}

TensorFormat target_format(const std::string& path, std::string_view field) {
  const auto format = format_of_name(path);
  const bool writable =
      format && *format != TensorFormat::npz && *format != TensorFormat::safetensors;
  if (!writable) {
    throw InputError("", field, path, "need a file name ending in .npy, .csv, .tsv or .json");
  }
  return *format;
}

}  // namespace

AnyTensor read_tensor(InputFile file, std::string_view name, TensorFormat format,
                      std::vector<std::string>& notes) {
  switch (format) {
    case TensorFormat::json:
      return read_json_tensor(file, name);
    case TensorFormat::safetensors:
      return read_safetensor(std::move(file), name, notes);
    case TensorFormat::npz:
      throw InputError(file.name(), "", "",
                       ".npz is not read by this version, save each array as .npy");
    default:
      break;
  }
  if (!name.empty()) {
    throw InputError(file.name(), "", name, "the file holds one array and no names");
  }
  if (format == TensorFormat::npy) return read_npy(file, notes);
  return parse_csv(file.text(), format == TensorFormat::csv ? ',' : '\t', file.name());
}

AnyTensor read_tensor(const TensorSource& source, std::string_view field,
                      std::vector<std::string>& notes) {
  if (source.values) return *source.values;
  const auto [path, name] = split_source(source.path);
  InputFile file(path, field);
  auto format = format_of_name(path);
  // /dev/stdin may well be a regular file, but its name says as little.
  const bool nameless = file.is_stream() || path.substr(0, 5) == "/dev/";
  if (!format && nameless) {
    if (file.size() == 0) {
      throw InputError(file.name(), "", "",
                       path == "-" ? "is empty (it can be read once only)" : "is empty");
    }
    format = format_of_content(file);
  }
  if (!format) {
    throw InputError("", field, path,
                     "need a file name ending in .npy, .csv, .tsv, .json or .safetensors");
  }
  return read_tensor(std::move(file), name, *format, notes);
}

void check_tensor_target(const std::string& path, std::string_view field) {
  target_format(path, field);
  check_writable(path, field);
}

void check_tensor_shape(const std::string& path, const Shape& shape, std::string_view field) {
  const TensorFormat format = target_format(path, field);
  if (format == TensorFormat::csv || format == TensorFormat::tsv) {
    check_csv_shape(shape, path, field);
  }
}

void write_tensor(const std::string& path, const AnyTensor& tensor, std::string_view field) {
  const TensorFormat format = target_format(path, field);
  check_tensor_shape(path, tensor.shape(), field);
  AtomicFile file(path, field);
  if (format == TensorFormat::npy) {
    write_npy(file, tensor);
  } else {
    write_text(file, tensor, format);
  }
  file.commit();
}

}  // namespace attnlab
