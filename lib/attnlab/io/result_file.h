#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/values.h"
#include "attnlab/io/safetensors.h"

namespace attnlab {

// All numbers that `source` holds, by name: of a result (.json) every matrix, scalar and column of
// rows; of a .safetensors file without :NAME every tensor; of anything else the one tensor, called
// "tensor". Scalars have rank 0, columns rank 1 (undefined cells are NaN); texts are left out.
// Throws InputError.
std::vector<NamedTensor> read_result(const TensorSource& source, std::string_view field,
                                     std::vector<std::string>& notes);

}  // namespace attnlab
