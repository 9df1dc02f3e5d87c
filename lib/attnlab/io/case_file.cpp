#include "attnlab/io/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "attnlab/core/error.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/atomic_folder.h"
#include "attnlab/io/dtype_text.h"
#include "attnlab/io/json.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = "case.json";
constexpr int kVersion = 1;
constexpr std::array<std::string_view, 3> kCaseFolders = {kReferenceFolder, kSeenKeysFolder,
                                                          kAllKeysFolder};
constexpr std::array<std::string_view, 4> kAxes = {"batch", "head", "row", "column"};

std::string file_of(const std::string& path) { return (fs::path(path) / kFile).string(); }

// case.json, value by value.
class CaseReader {
 public:
  explicit CaseReader(std::string source) : source_(std::move(source)) {}

  CaseDescription read(const Json& json) const {
    if (!json.is_object() || !json.contains("case")) refuse("", json, "need a case");
    if (json["case"] != kVersion) {
      refuse("case", json["case"], fmt::format("need {}, the version known here", kVersion));
    }
    CaseDescription description;
    const std::string dtype = text(member(json, "dtype"), "dtype");
    const auto named = float_of_name(dtype);
    if (!named) refuse("dtype", json["dtype"], "need float16, bfloat16, float32 or float64");
    description.dtype = *named;
    for (const Json& input : list(member(json, "inputs"), "inputs")) {
      description.inputs.push_back(name(input, "inputs"));
    }
    std::set<std::string> names;
    for (const Json& matrix : list(member(json, "matrices"), "matrices")) {
      CaseMatrix read = read_matrix(matrix);
      if (!names.insert(read.name).second) refuse("matrices", matrix["name"], "is there twice");
      description.matrices.push_back(std::move(read));
    }
    return description;
  }

 private:
  [[noreturn]] void refuse(std::string_view field, const Json& value,
                           const std::string& rule) const {
    throw InputError(source_, field, value.dump(-1, ' ', false, Json::error_handler_t::replace),
                     rule);
  }
  const Json& member(const Json& object, const std::string& key) const {
    static const Json kNull;
    if (!object.is_object()) refuse("", object, "need an object");
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
  }
  const Json& list(const Json& value, std::string_view field) const {
    if (!value.is_array()) refuse(field, value, "need a list");
    return value;
  }
  std::string text(const Json& value, std::string_view field) const {
    if (!value.is_string()) refuse(field, value, "need text");
    return value.get<std::string>();
  }
  // Names become paths: none may lead out of the folder.
  std::string name(const Json& value, std::string_view field) const {
    std::string name = text(value, field);
    const auto plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    };
    if (name.empty() || !std::all_of(name.begin(), name.end(), plain)) {
      refuse(field, value, "need a name of letters a to z, digits and underscores");
    }
    return name;
  }
  std::optional<double> error(const Json& value, std::string_view field) const {
    if (value.is_null()) return std::nullopt;
    if (!value.is_number() || !(value.get<double>() >= 0)) {
      refuse(field, value, "need a number, 0 or more");
    }
    return value.get<double>();
  }

  CaseMatrix read_matrix(const Json& json) const {
    CaseMatrix matrix;
    matrix.name = name(member(json, "name"), "name");
    matrix.formula = text(member(json, "formula"), "formula");
    std::size_t next = 0;
    for (const Json& value : list(member(json, "axes"), "axes")) {
      const std::string axis = text(value, "axes");
      const auto found = std::find(kAxes.begin() + next, kAxes.end(), axis);
      if (found == kAxes.end()) refuse("axes", json["axes"], "need batch, head, row and column");
      next = static_cast<std::size_t>(found - kAxes.begin()) + 1;
      matrix.axes.push_back(axis);
    }
    const Json& plain = member(json, "plain");
    if (!plain.is_object()) refuse("plain", plain, "need errors by dtype");
    for (const auto& [key, figures] : plain.items()) {
      const auto dtype = float_of_name(key);
      if (!dtype) refuse("plain", key, "need a dtype");
      matrix.plain[*dtype] = {error(member(figures, "max_abs_error"), "max_abs_error"),
                              error(member(figures, "relative_norm"), "relative_norm")};
    }
    return matrix;
  }

  std::string source_;
};

Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? number_to_json(*value) : Json(nullptr);
}

// Every file that a case of this description has.
std::set<std::string> files_of(const CaseDescription& description) {
  std::set<std::string> files = {std::string(kFile), "config.json"};
  for (const std::string& input : description.inputs) files.insert(input + ".npy");
  for (const CaseMatrix& matrix : description.matrices) {
    const std::string file = matrix.name + ".npy";
    files.insert(file);
    for (const std::string_view folder : kCaseFolders) {
      files.insert(std::string(folder) + "/" + file);
    }
  }
  return files;
}

void check_replaceable(const std::string& path, std::string_view field) {
  std::error_code error;
  if (!fs::is_directory(path, error) || fs::is_empty(path, error)) return;
  if (!is_case(path)) {
    throw InputError("", field, path, "is a folder and no case: it is left as it is");
  }
  const std::set<std::string> known = files_of(read_case(path, field));
  const std::set<std::string_view> folders(kCaseFolders.begin(), kCaseFolders.end());
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(path).generic_string();
    const bool folder = entry->is_directory(error) && !entry->is_symlink(error);
    if (folder ? folders.contains(name) : known.contains(name)) continue;
    throw InputError("", field, path,
                     fmt::format("holds {} too, which is no part of a case", printable(name)));
  }
  if (error) throw InputError("", field, path, "cannot be read: " + error.message());
}

}  // namespace

bool is_case(const std::string& path) {
  // Without a path that would be a file where the user happens to be.
  std::error_code error;
  return !path.empty() && fs::is_regular_file(file_of(path), error);
}

CaseDescription read_case(const std::string& path, std::string_view field) {
  const std::string file = file_of(path);
  return CaseReader(file).read(parse_json(read_file(file, field), file));
}

std::string case_json(const CaseDescription& description) {
  Json json = {{"case", kVersion},
               {"dtype", dtype_name(description.dtype)},
               {"inputs", description.inputs},
               {"matrices", Json::array()}};
  for (const CaseMatrix& matrix : description.matrices) {
    Json plain = Json::object();
    for (const auto& [dtype, error] : matrix.plain) {
      plain[std::string(dtype_name(dtype))] = {
          {"max_abs_error", number_or_null(error.max_abs_error)},
          {"relative_norm", number_or_null(error.relative_norm)}};
    }
    json["matrices"].push_back({{"name", matrix.name},
                                {"formula", matrix.formula},
                                {"axes", matrix.axes},
                                {"plain", std::move(plain)}});
  }
  return dump_json(json) + "\n";
}

void check_case_target(const std::string& path, std::string_view field) {
  if (path == "-") throw InputError("", field, path, "need a folder, which no stream is");
  check_replaceable(path, field);
  check_folder_writable(path, field);
}

}  // namespace attnlab
