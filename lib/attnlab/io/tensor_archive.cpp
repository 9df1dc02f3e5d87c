#include "attnlab/io/tensor_archive.h"

#include <algorithm>

#include "attnlab/io/json_archive.h"
#include "attnlab/io/npz.h"
#include "attnlab/io/safetensors.h"

namespace attnlab {

AnyTensor TensorArchive::read_only_one(std::vector<std::string>& notes) const {
  const std::vector<std::string> all = names();
  if (all.size() == 1) return read(all[0], notes);
  throw InputError(path(), "", "", "add :NAME for one of its tensors: " + listed_names(all));
}

const std::map<std::string, std::string>& TensorArchive::metadata() const {
  static const std::map<std::string, std::string> kNone;
  return kNone;
}

std::unique_ptr<TensorArchive> open_archive(InputFile file, TensorFormat format) {
  switch (format) {
    case TensorFormat::npz:
      return std::make_unique<NpzFile>(std::move(file));
    case TensorFormat::safetensors:
      return std::make_unique<SafetensorsFile>(std::move(file));
    case TensorFormat::json:
      return std::make_unique<JsonArchive>(file);
    default:
      throw InputError(file.name(), "", "", "the file holds one array and no names");
  }
}

std::string listed_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i], 60);
  }
  if (names.size() > kMost) text += ", ... (" + std::to_string(names.size()) + " in all)";
  return text.empty() ? "none" : text;
}

InputError no_such_tensor(const std::string& path, std::string_view name,
                          const std::vector<std::string>& names, std::string_view things) {
  const std::string nearest = nearest_name(name, names);
  return {path, "", name,
          "need one of its " + std::string(things) + ": " + listed_names(names) +
              (nearest.empty() ? "" : ", did you mean " + nearest + "?")};
}

}  // namespace attnlab
