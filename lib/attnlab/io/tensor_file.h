#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/values.h"
#include "attnlab/io/input_file.h"
#include "attnlab/io/tensor_format.h"

namespace attnlab {

// Reads the tensor that `source` names: an array given in its place, FILE, FILE:NAME, or "-" (and
// "-:NAME") for standard input. The format follows the extension (.npy, .npz, .csv, .tsv, .json,
// .safetensors); for standard input, and for pipes and devices without one, the first bytes. NAME
// is a tensor of a .npz or .safetensors file or a member of a .json object, or of the object
// "result" in it (so that the files this tool writes are read back); without it a file may hold one
// only. `field` is the option to name in errors. What is odd but readable is said in `notes`.
// Throws InputError.
//
// The elements of a big array of floats are the file's own pages wherever they lie in it as in
// memory: no other program may write into the file or cut it short while the tensor lives (see
// InputFile::map). Replacing or removing the file does no harm, nor does writing to the tensor.
AnyTensor read_tensor(const TensorSource& source, std::string_view field,
                      std::vector<std::string>& notes);

// The format of an opened file: by the extension of `path`, or by the first bytes of what has no
// name. Throws InputError naming `field` when it is none that tensors are read from.
TensorFormat tensor_format(const InputFile& file, std::string_view path, std::string_view field);

// The tensor called `name` ("" for none) in an opened file of the given format.
AnyTensor read_tensor(InputFile file, std::string_view name, TensorFormat format,
                      std::vector<std::string>& notes);

// Throws InputError when `path` has no format that tensors can be written in (.npy, .csv, .tsv,
// .json) or cannot be written: to be asked before the work starts.
void check_tensor_target(const std::string& path, std::string_view field);

// Throws InputError when the format of `path` has no place for a tensor of that shape: to be asked
// before the first of several files is written.
void check_tensor_shape(const std::string& path, const Shape& shape, std::string_view field);

// Writes `tensor` at full precision in the format of the extension. The file appears whole or not
// at all. Text holds every value as a float64 and reads back the same; .csv and .tsv take up to two
// axes. bfloat16 is written to .npy as float32. Throws InputError.
void write_tensor(const std::string& path, const AnyTensor& tensor, std::string_view field);

}  // namespace attnlab
