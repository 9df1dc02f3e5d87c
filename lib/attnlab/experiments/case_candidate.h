#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/core/values.h"
#include "attnlab/io/case_file.h"
#include "attnlab/io/result_file.h"

namespace attnlab {

// What is held against a case: another case, a folder of files named after its matrices
// ("output.npy", "weights.csv"), a file with tensors of such names, or one tensor, which is the
// output unless its own name or its file's says otherwise.
class CaseCandidate {
 public:
  // What `source`, the option `field`, has of the case's matrices is found here and read later; in
  // `notes` what else there is. Throws InputError when it has none.
  CaseCandidate(const TensorSource& source, std::string_view field,
                const CaseDescription& description, std::vector<std::string>& notes);

  bool has(const std::string& name) const { return files_.contains(name) || read_.contains(name); }
  // The matrix `name`, which it has. Throws InputError.
  ResultEntry read(const std::string& name, std::vector<std::string>& notes) const;
  // Where that comes from, for errors.
  std::string source_of(const std::string& name) const;

 private:
  void find_in_case(std::vector<std::string>& notes);
  void find_in_folder(std::vector<std::string>& notes);
  void find_in_file(const TensorSource& source, std::vector<std::string>& notes);
  bool is_matrix(std::string_view name) const;

  std::string path_, field_;
  const CaseDescription& description_;
  std::map<std::string, std::string> files_;  // matrix to file
  std::map<std::string, ResultEntry> read_;
  std::optional<DType> computed_in_;  // of another case, whose .npy cannot say bfloat16
};

}  // namespace attnlab
