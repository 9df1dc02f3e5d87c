#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/values.h"

namespace attnlab {

// Reads the tensor that `source` names: an array given in its place, FILE, FILE:NAME, or "-" for
// standard input. The format follows the extension (.npy, .csv, .tsv, .json, .safetensors), for
// standard input the first bytes. `field` is the option to name in errors. What is odd but
// readable is said in `notes`. Throws InputError.
AnyTensor read_tensor(const TensorSource& source, std::string_view field,
                      std::vector<std::string>& notes);

// Throws InputError when `path` has no format that tensors can be written in (.npy, .csv, .tsv,
// .json) or cannot be written: to be asked before the work starts.
void check_tensor_target(const std::string& path, std::string_view field);

// Writes `tensor` at full precision in the format of the extension. The file appears whole or not
// at all. Throws InputError.
void write_tensor(const std::string& path, const AnyTensor& tensor, std::string_view field);

}  // namespace attnlab
