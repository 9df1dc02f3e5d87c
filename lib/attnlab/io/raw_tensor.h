#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/tensor.h"
#include "attnlab/io/input_file.h"

namespace attnlab {

// The file formats' bytes are little endian; elements are written as they lie in memory.
static_assert(std::endian::native == std::endian::little);

// The elements of `shape` that stand row by row from `offset` on, bytes of each swapped first where
// they are big endian. Any byte but 0 is true in a boolean; one other than 1 is said in `notes`.
// Throws InputError when the memory does not hold them; the file must be known to.
AnyTensor read_raw_tensor(const InputFile& file, std::uint64_t offset, DType dtype,
                          const Shape& shape, bool big_endian, std::vector<std::string>& notes);

// The elements as they lie in memory. Lives as long as `tensor`.
std::string_view raw_bytes(const AnyTensor& tensor);

}  // namespace attnlab
