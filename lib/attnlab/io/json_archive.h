#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/io/tensor_archive.h"

namespace attnlab {

// A JSON file: the arrays and numbers of an object by their keys; of a result file those of the
// object "result" in it, unless the name stands at the top. An array alone has no name.
class JsonArchive : public TensorArchive {
 public:
  // Throws InputError when the file is no JSON.
  explicit JsonArchive(const InputFile& file);
  JsonArchive(const JsonArchive&) = delete;
  JsonArchive& operator=(const JsonArchive&) = delete;
  JsonArchive(JsonArchive&&) = delete;
  JsonArchive& operator=(JsonArchive&&) = delete;
  ~JsonArchive() override;

  // Whether it holds an object.
  bool has_names() const;

  const std::string& path() const override { return path_; }
  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override;
  AnyTensor read(std::string_view name, std::vector<std::string>& notes) const override;
  AnyTensor read_only_one(std::vector<std::string>& notes) const override;

 private:
  struct Document;  // what nlohmann_json makes of the file, which users of this header need not
                    // have

  std::string path_;
  std::unique_ptr<Document> document_;
};

}  // namespace attnlab
