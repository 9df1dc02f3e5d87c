#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attnlab/core/tensor.h"
#include "attnlab/io/input_file.h"
#include "attnlab/io/tensor_archive.h"

namespace attnlab {

// An opened .safetensors file (github.com/huggingface/safetensors): the length of the header, the
// header in JSON, the data. The header is checked as a whole when the file is opened: the tensors
// must fill the data without a hole or an overlap, each with the bytes that its type and shape
// need. Of the data only what is asked for is read.
class SafetensorsFile : public TensorArchive {
 public:
  // Throws InputError naming the file and, where one is at fault, the tensor.
  SafetensorsFile(const std::string& path, std::string_view field);
  explicit SafetensorsFile(InputFile file);

  const std::string& path() const override { return file_.name(); }
  std::vector<std::string> names() const override;
  // In the order of the data.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // The texts under "__metadata__".
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  bool has(std::string_view name) const override;
  AnyTensor read(std::string_view name, std::vector<std::string>& notes) const override;

 private:
  InputFile file_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t> places_;  // in tensors_
  std::vector<std::uint64_t> offsets_;         // in the file, of each of tensors_
  std::map<std::string, std::string> metadata_;
};

// The tensors of the file at `path`, in the order of its data.
std::vector<TensorInfo> safetensors_info(const std::string& path, std::string_view field);

struct NamedTensor {
  std::string name;
  AnyTensor tensor;
};

// Writes the tensors as the reference implementation does: data by falling alignment of the type,
// then by name; the header padded with spaces to a multiple of 8. The file appears whole or not at
// all. Throws InputError naming `field`, also for a name given twice.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       std::string_view field,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace attnlab
