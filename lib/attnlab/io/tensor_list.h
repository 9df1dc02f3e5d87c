#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/io/tensor_archive.h"

namespace attnlab {

// What the file at `path` ("-" for standard input) holds, of any format that tensors are read from.
// Of .npy, .npz and .safetensors files only the headers are read; text has its shapes in its data.
// A file without names holds one tensor, called "". Dtypes are called as in errors ("float32"), or
// as the format calls them where no Tensor has them; what cannot be read at all has an empty one,
// and a note says why. Throws InputError naming `field` or the file.
std::vector<TensorInfo> list_tensors(const std::string& path, std::string_view field,
                                     std::vector<std::string>& notes);

}  // namespace attnlab
