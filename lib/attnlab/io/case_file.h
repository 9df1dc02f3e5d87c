#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/dtype.h"

namespace attnlab {

// A case is a folder with one call of attention, for a kernel to be held against:
//
//     config.json              the options: attnlab run CASE/config.json is the same call
//     q.npy, mask.npy ...      the inputs
//     scores.npy, output.npy   every matrix of the call, in its dtype
//     reference/output.npy     the same from the same inputs in float64, step by step
//     mean_of_seen_keys/       weights and output of a careless answer: equal weights on the keys
//                              that each row may see, the mean of V over them
//     mean_of_all_keys/        output where the mask is forgotten as well; only where there is one
//     case.json                what is read here
inline constexpr std::string_view kReferenceFolder = "reference";
inline constexpr std::string_view kSeenKeysFolder = "mean_of_seen_keys";
inline constexpr std::string_view kAllKeysFolder = "mean_of_all_keys";

// How far a computation is from the float64 reference.
struct CaseError {
  std::optional<double> max_abs_error, relative_norm;
};

struct CaseMatrix {
  std::string name;
  std::string formula;               // "" for what is given
  std::vector<std::string> axes;     // of "batch", "head", "row", "column" those it has, in order
  std::map<DType, CaseError> plain;  // of the plain path, by the dtype it computes in
};

struct CaseDescription {
  DType dtype = DType::float32;      // of the call
  std::vector<std::string> inputs;   // names of files, without .npy
  std::vector<CaseMatrix> matrices;  // in the order of computation
};

// Whether `path` is a folder with a case.json.
bool is_case(const std::string& path);

// Throws InputError naming `field`, or the file and what is wrong in it.
CaseDescription read_case(const std::string& path, std::string_view field);

// What case.json holds.
std::string case_json(const CaseDescription& description);

// Throws InputError naming `field` when no case can be written at `path`: it is no folder that can
// be made there, or it has something in it that a case would not bring back.
void check_case_target(const std::string& path, std::string_view field);

}  // namespace attnlab
