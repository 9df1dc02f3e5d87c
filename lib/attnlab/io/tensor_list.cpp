#include "attnlab/io/tensor_list.h"

#include <algorithm>
#include <utility>

#include "attnlab/io/csv.h"
#include "attnlab/io/json_archive.h"
#include "attnlab/io/npy.h"
#include "attnlab/io/npz.h"
#include "attnlab/io/safetensors.h"
#include "attnlab/io/safetensors_dtype.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab {
namespace {

TensorInfo info_of(std::string name, DType dtype, const Shape& shape) {
  const auto axes = shape.axes();
  return {.name = std::move(name),
          .dtype = std::string(dtype_name(dtype)),
          .shape = {axes.begin(), axes.end()},
          .bytes = static_cast<std::uint64_t>(shape.size()) * dtype_size(dtype)};
}

// Calls `info` for each name; of what it refuses there is the name alone, and a note.
template <class F>
std::vector<TensorInfo> each(const std::vector<std::string>& names, std::vector<std::string>& notes,
                             F&& info) {
  std::vector<TensorInfo> list;
  for (const std::string& name : names) {
    try {
      list.push_back(info(name));
    } catch (const InputError& error) {
      list.push_back({.name = name, .dtype = {}, .shape = {}});
      notes.emplace_back(error.what());
    }
  }
  return list;
}

std::vector<TensorInfo> list_npz(InputFile file, std::vector<std::string>& notes) {
  const NpzFile npz(std::move(file));
  for (const std::string& other : npz.others()) {
    notes.push_back(npz.path() + ": " + printable(other, 60) + " is no .npy file");
  }
  return each(npz.names(), notes, [&](const std::string& name) { return npz.info(name); });
}

std::vector<TensorInfo> list_safetensors(InputFile file) {
  const SafetensorsFile safetensors(std::move(file));
  std::vector<TensorInfo> list = safetensors.tensors();
  for (TensorInfo& info : list) {
    const auto type =
        std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                     [&](const SafetensorsType& known) { return known.name == info.dtype; });
    if (type->dtype) info.dtype = dtype_name(*type->dtype);
  }
  return list;
}

std::vector<TensorInfo> list_json(const InputFile& file, std::vector<std::string>& notes) {
  const JsonArchive json(file);
  const auto info = [&](const std::string& name) {
    const AnyTensor tensor = name.empty() ? json.read_only_one(notes) : json.read(name, notes);
    return info_of(name, tensor.dtype(), tensor.shape());
  };
  if (!json.has_names()) return {info("")};
  return each(json.names(), notes, info);
}

}  // namespace

std::vector<TensorInfo> list_tensors(const std::string& path, std::string_view field,
                                     std::vector<std::string>& notes) {
  InputFile file(path, field);
  switch (tensor_format(file, path, field)) {
    case TensorFormat::npz:
      return list_npz(std::move(file), notes);
    case TensorFormat::safetensors:
      return list_safetensors(std::move(file));
    case TensorFormat::json:
      return list_json(file, notes);
    case TensorFormat::npy: {
      const NpyHeader header = read_checked_npy_header(file, notes);
      return {info_of("", header.dtype, header.shape)};
    }
    case TensorFormat::csv:
      return {info_of("", DType::float64, parse_csv(file.text(), ',', file.name()).shape())};
    case TensorFormat::tsv:
      break;
  }
  return {info_of("", DType::float64, parse_csv(file.text(), '\t', file.name()).shape())};
}

}  // namespace attnlab
