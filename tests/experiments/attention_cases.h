#pragma once

#include <string>
#include <utility>

#include "attnlab/experiments/save_case.h"
#include "attnlab/io/tensor_file.h"
#include "experiments/inputs.h"
#include "temporary_folder.h"

namespace attnlab {

// Writes the case of that call into `path`, its config aside, and returns the result.
inline AttendResult save_case(AttendOptions options, const std::string& path) {
  options.keep.save_case.path = path;
  AttendResult result = attend(options, {});
  write_case(path, result, "{}\n");
  return result;
}

inline AnyTensor read_file_of(const std::string& folder, const std::string& name) {
  std::vector<std::string> notes;
  return read_tensor({.path = folder + "/" + name, .values = {}}, "test", notes);
}

// Two heads, more keys than queries, causal.
inline AttendOptions causal_call() {
  AttendOptions options;
  options.sizes.heads = 2;
  options.sizes.n = 5;
  options.sizes.m = 7;
  options.sizes.d_k = 6;
  options.mask.causal = true;
  return options;
}

}  // namespace attnlab
