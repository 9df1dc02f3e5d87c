#pragma once

#include <tuple>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/io/case_file.h"
#include "attnlab/io/result_file.h"

namespace attnlab {

// Where a call is kept for a kernel to be held against.
struct CaseOptions {
  FilePath save_case;

  static constexpr auto fields() {
    return std::tuple(field("save_case", &CaseOptions::save_case,
                            "write a folder for attnlab compare to hold a kernel against: inputs, "
                            "a config that reruns, every matrix, and each in float64",
                            {.unit = "DIR"}));
  }
};

// What a case has beside the matrices of the result.
struct AttentionCase {
  CaseDescription description;
  std::vector<ResultEntry> inputs;     // by the options that named them; of any dtype
  std::vector<ResultEntry> reference;  // every matrix of the description in float64
  // Careless answers in float64: weights and output of equal weights on the keys that each row may
  // see, and with a mask the output of equal weights on all.
  std::vector<ResultEntry> seen_keys, all_keys;
};

}  // namespace attnlab
