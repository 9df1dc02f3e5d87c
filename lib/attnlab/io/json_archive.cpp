#include "attnlab/io/json_archive.h"

#include "attnlab/io/json.h"

namespace attnlab {

struct JsonArchive::Document {
  Json top;

  // The object that `name` chooses from.
  const Json& object_of(std::string_view name) const {
    const bool at_top = !name.empty() && top.contains(std::string(name));
    const auto result = top.find("result");
    const bool is_result_file = result != top.end() && result->is_object();
    return is_result_file && !at_top ? *result : top;
  }
};

JsonArchive::JsonArchive(const InputFile& file)
    : path_(file.name()),
      document_(std::make_unique<Document>(Document{parse_json(file.text(), file.name())})) {}

JsonArchive::~JsonArchive() = default;

bool JsonArchive::has_names() const { return document_->top.is_object(); }

std::vector<std::string> JsonArchive::names() const {
  std::vector<std::string> names;
  const Json& object = document_->object_of("");
  if (!object.is_object()) return names;
  for (const auto& [key, value] : object.items()) {
    if (value.is_array() || value.is_number()) names.push_back(key);
  }
  return names;
}

bool JsonArchive::has(std::string_view name) const {
  return document_->object_of(name).contains(std::string(name));
}

AnyTensor JsonArchive::read(std::string_view name, std::vector<std::string>& /*notes*/) const {
  const Json& object = document_->object_of(name);
  if (!object.is_object()) {
    throw InputError(path_, "", name, "the file holds one array and no names");
  }
  const auto found = object.find(std::string(name));
  if (found == object.end()) throw no_such_tensor(path_, name, names(), "arrays");
  return tensor_from_json(*found, path_, name);
}

AnyTensor JsonArchive::read_only_one(std::vector<std::string>& notes) const {
  const Json& object = document_->object_of("");
  if (!object.is_object()) return tensor_from_json(object, path_, "");
  if (object.size() == 1) return read(object.begin().key(), notes);
  throw InputError(path_, "", "",
                   "holds an object: add :NAME for one of its arrays: " + listed_names(names()));
}

}  // namespace attnlab
