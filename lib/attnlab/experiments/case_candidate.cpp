#include "attnlab/experiments/case_candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/experiments/rounding.h"
#include "attnlab/io/tensor_archive.h"
#include "attnlab/io/tensor_format.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_of(const CaseDescription& description) {
  std::vector<std::string> names;
  for (const CaseMatrix& matrix : description.matrices) names.push_back(matrix.name);
  return names;
}

// Files by name, whatever order the system lists them in.
std::vector<fs::path> files_in(const std::string& path, std::string_view field) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (format_of_name(entry->path().string())) files.push_back(entry->path());
  }
  if (error) throw InputError("", field, path, "cannot be read: " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

CaseCandidate::CaseCandidate(const TensorSource& source, std::string_view field,
                             const CaseDescription& description, std::vector<std::string>& notes)
    : path_(source.values ? std::string(field) : source.path),
      field_(field),
      description_(description) {
  std::error_code error;
  if (source.values || !fs::is_directory(path_, error)) {
    find_in_file(source, notes);
  } else if (is_case(path_)) {
    find_in_case(notes);
  } else {
    find_in_folder(notes);
  }
  if (!files_.empty() || !read_.empty()) return;
  throw InputError("", field_, path_,
                   "has none of the matrices of the case: " + listed_names(names_of(description)));
}

bool CaseCandidate::is_matrix(std::string_view name) const {
  return std::any_of(description_.matrices.begin(), description_.matrices.end(),
                     [&](const CaseMatrix& matrix) { return matrix.name == name; });
}

void CaseCandidate::find_in_case(std::vector<std::string>& notes) {
  const CaseDescription other = read_case(path_, field_);
  computed_in_ = other.dtype;
  std::vector<std::string> others;
  for (const CaseMatrix& matrix : other.matrices) {
    if (is_matrix(matrix.name)) {
      files_[matrix.name] = (fs::path(path_) / (matrix.name + ".npy")).string();
    } else {
      others.push_back(matrix.name);
    }
  }
  if (others.empty()) return;
  notes.push_back(fmt::format("{}: what the case has not: {}", path_, listed_names(others)));
}

void CaseCandidate::find_in_folder(std::vector<std::string>& notes) {
  std::vector<std::string> others;
  for (const fs::path& file : files_in(path_, field_)) {
    const std::string name = file.stem().string();
    if (is_matrix(name)) {
      const auto [there, is_new] = files_.emplace(name, file.string());
      if (is_new) continue;
      throw InputError(
          "", field_, path_,
          fmt::format("has two of {}: {} and {}", name, fs::path(there->second).filename().string(),
                      file.filename().string()));
    }
    const std::vector<std::string>& inputs = description_.inputs;
    if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) {
      others.push_back(file.filename().string());
    }
  }
  if (others.empty()) return;
  notes.push_back(fmt::format("{}: what the case has not: {}", path_, listed_names(others)));
}

void CaseCandidate::find_in_file(const TensorSource& source, std::vector<std::string>& notes) {
  std::vector<ResultEntry> entries = read_result(source, field_, notes);
  const auto known = [&](const ResultEntry& entry) { return is_matrix(entry.name); };
  if (entries.size() == 1 && !known(entries[0])) {
    const SourceName parts = split_source(source.path);
    const std::string name = parts.name.empty() ? fs::path(parts.path).stem().string() : parts.name;
    entries[0].name = is_matrix(name) ? name : "output";
  }
  for (ResultEntry& entry : entries) {
    if (!known(entry)) continue;
    std::string name = entry.name;
    read_.emplace(std::move(name), std::move(entry));
  }
}

ResultEntry CaseCandidate::read(const std::string& name, std::vector<std::string>& notes) const {
  if (const auto entry = read_.find(name); entry != read_.end()) return entry->second;
  const std::string& file = files_.at(name);
  std::vector<ResultEntry> entries = read_result({.path = file, .values = {}}, field_, notes);
  auto entry = std::find_if(entries.begin(), entries.end(),
                            [&](const ResultEntry& candidate) { return candidate.name == name; });
  if (entry == entries.end() && entries.size() == 1) entry = entries.begin();
  if (entry == entries.end()) {
    std::vector<std::string> names;
    names.reserve(entries.size());
    for (const ResultEntry& other : entries) names.push_back(other.name);
    throw no_such_tensor(file, name, names, "tensors");
  }
  entry->name = name;
  if (computed_in_ && is_floating(entry->dtype())) {
    entry->computed_in = narrower(entry->dtype(), *computed_in_);
  }
  return std::move(*entry);
}

std::string CaseCandidate::source_of(const std::string& name) const {
  const auto file = files_.find(name);
  return file == files_.end() ? path_ : file->second;
}

}  // namespace attnlab
