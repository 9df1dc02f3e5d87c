#include "attnlab/io/tensor_file.h"

#include <algorithm>

#include "attnlab/core/error.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/csv.h"
#include "attnlab/io/json.h"
#include "attnlab/io/npy.h"
#include "attnlab/io/tensor_archive.h"

namespace attnlab {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

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
  if (format == TensorFormat::npz || format == TensorFormat::safetensors ||
      format == TensorFormat::json) {
    const std::unique_ptr<TensorArchive> archive = open_archive(std::move(file), format);
    return name.empty() ? archive->read_only_one(notes) : archive->read(name, notes);
  }
  if (!name.empty()) {
    throw InputError(file.name(), "", name, "the file holds one array and no names");
  }
  if (format == TensorFormat::npy) return read_npy(file, notes);
  return parse_csv(file.text(), format == TensorFormat::csv ? ',' : '\t', file.name());
}

TensorFormat tensor_format(const InputFile& file, std::string_view path, std::string_view field) {
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
                     "need a file name ending in .npy, .npz, .csv, .tsv, .json or .safetensors");
  }
  return *format;
}

AnyTensor read_tensor(const TensorSource& source, std::string_view field,
                      std::vector<std::string>& notes) {
  if (source.values) return *source.values;
  const auto [path, name] = split_source(source.path);
  InputFile file(path, field);
  const TensorFormat format = tensor_format(file, path, field);
  return read_tensor(std::move(file), name, format, notes);
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
