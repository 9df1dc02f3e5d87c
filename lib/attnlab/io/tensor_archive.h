#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/core/tensor.h"
#include "attnlab/io/input_file.h"
#include "attnlab/io/tensor_format.h"

namespace attnlab {

// What a file says of one tensor. Listing knows every type of a format and any rank; reading needs
// a DType and rank 4 at most.
struct TensorInfo {
  std::string name;
  std::string dtype;  // as the format names it: "F32"
  std::vector<Index> shape;
  std::uint64_t bytes = 0;
};

// An opened file of tensors that have names.
class TensorArchive {
 public:
  TensorArchive() = default;
  TensorArchive(const TensorArchive&) = delete;
  TensorArchive& operator=(const TensorArchive&) = delete;
  TensorArchive(TensorArchive&&) = delete;
  TensorArchive& operator=(TensorArchive&&) = delete;
  virtual ~TensorArchive() = default;

  virtual const std::string& path() const = 0;
  // In the order of the file.
  virtual std::vector<std::string> names() const = 0;
  virtual bool has(std::string_view name) const = 0;
  // Throws InputError when there is no such tensor, naming what there is, or when it has a type or
  // rank that no Tensor has.
  virtual AnyTensor read(std::string_view name, std::vector<std::string>& notes) const = 0;
  // The tensor of a file that has one only. Throws InputError naming those that there are.
  virtual AnyTensor read_only_one(std::vector<std::string>& notes) const;
  // Texts that the file holds beside its tensors.
  virtual const std::map<std::string, std::string>& metadata() const;
};

// Opens a file of the format npz, safetensors or json; others hold no names. Throws InputError.
std::unique_ptr<TensorArchive> open_archive(InputFile file, TensorFormat format);

// "a, b, ... (17 in all)", or "none".
std::string listed_names(const std::vector<std::string>& names);

// That `path` has no `name`, one of the `things` ("tensors") called `names`; with the nearest one.
InputError no_such_tensor(const std::string& path, std::string_view name,
                          const std::vector<std::string>& names, std::string_view things);

}  // namespace attnlab
