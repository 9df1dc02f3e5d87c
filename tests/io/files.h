#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "attnlab/core/error.h"
#include "attnlab/io/tensor_file.h"

namespace attnlab::test {

// A folder of its own for one test, removed with all it holds at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "attnlab-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  // Writes a file and gives its path.
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path(name);
  }
  std::size_t entries() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      count += entry.exists() || entry.is_symlink();
    }
    return count;
  }

 private:
  std::filesystem::path path_;
};

inline std::string fixture(const std::string& name) {
  return std::string(ATTNLAB_TEST_DATA) + "/fixtures/" + name;
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// What read_tensor gives for FILE or FILE:NAME.
inline AnyTensor read(const std::string& source) {
  std::vector<std::string> notes;
  return read_tensor(TensorSource{source, {}}, "q", notes);
}

inline std::vector<std::string> notes_of(const std::string& source) {
  std::vector<std::string> notes;
  read_tensor(TensorSource{source, {}}, "q", notes);
  return notes;
}

// The message of the InputError that `work` throws; "" when it throws none.
template <class F>
std::string error_of(F&& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

inline std::string read_error(const std::string& source) {
  return error_of([&] { read(source); });
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The elements as float64.
inline std::vector<double> values(const AnyTensor& tensor) {
  const Tensor<double> doubles = tensor.cast<double>();
  return {doubles.values().begin(), doubles.values().end()};
}

}  // namespace attnlab::test
