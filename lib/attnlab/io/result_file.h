#pragma once

#include <optional>
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
  std::vector<std::string> texts = {};
  // Empty, or where in the file's lists every element of the flat tensor stands: "[2, 0]".
  std::vector<std::string> places = {};
  // The dtype that a result says it was computed in, which its text does not show.
  std::optional<DType> computed_in = std::nullopt;

  DType dtype() const { return computed_in.value_or(tensor.dtype()); }
};

// All that `source` holds, by name: of a result (.json) every matrix, scalar and column of rows, of
// another object in .json what it holds alike; of a .safetensors or .npz file without :NAME every
// tensor; of anything else the one tensor, called "tensor". Scalars have rank 0; columns, their
// lists one after the other, rank 1. What is not whole numbers alone is of the dtype that the
// result names, "dtype" beside it or its option, and matrices are in any case. Throws InputError.
std::vector<ResultEntry> read_result(const TensorSource& source, std::string_view field,
                                     std::vector<std::string>& notes);

}  // namespace attnlab
