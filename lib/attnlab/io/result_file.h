#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/values.h"

namespace attnlab {

// What a result holds under one name.
struct ResultEntry {
  std::string name;
  AnyTensor tensor;  // NaN where something else than a number stands
  // Empty, or for every element the JSON of what stands in place of a number ("null", "true",
  // "\"stable\"") and "" where there is one.
  std::vector<std::string> texts;
  // Empty, or where in the file's lists every element of the flat tensor stands: "[2, 0]".
  std::vector<std::string> places;
};

// All that `source` holds, by name: of a result (.json) every matrix, scalar and column of rows; of
// a .safetensors or .npz file without :NAME every tensor; of anything else the one tensor, called
// "tensor". Scalars have rank 0; columns, their lists one after the other, rank 1. Throws
// InputError.
std::vector<ResultEntry> read_result(const TensorSource& source, std::string_view field,
                                     std::vector<std::string>& notes);

}  // namespace attnlab
