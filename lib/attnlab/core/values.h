#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attnlab/core/tensor.h"

namespace attnlab {

// Option values that are more than a number or a text.

// A path the user gave. In a config it is relative to the config file; by the time the library
// sees it, it is absolute or relative to the working directory.
struct FilePath {
  std::string path;

  bool empty() const { return path.empty(); }
  friend bool operator==(const FilePath&, const FilePath&) = default;
};

// Where a tensor comes from: FILE, FILE:NAME, "-" for standard input, or an array written where
// the path would stand (nested arrays in a config, a list of numbers on the command line).
struct TensorSource {
  std::string path;
  std::optional<AnyTensor> values;

  bool empty() const { return path.empty() && !values; }
};

// A number, or one of the words that stand for one: --scale auto|none|0.125.
struct WordOrNumber {
  std::string word;
  double number = 0;

  WordOrNumber() = default;
  WordOrNumber(const char* w) : word(w) {}       // NOLINT(google-explicit-constructor): a default
  WordOrNumber(double value) : number(value) {}  // NOLINT(google-explicit-constructor)
  bool is_number() const { return word.empty(); }
};

// One NAME=FILE of --save.
struct NamedFile {
  std::string name;
  std::string path;
};
using NamedFiles = std::vector<NamedFile>;

}  // namespace attnlab
