#include "attnlab/io/npz.h"

#include <utility>

#include "attnlab/io/npy.h"

namespace attnlab {
namespace {

constexpr std::string_view kExtension = ".npy";
// What tells how long the header is.
constexpr std::uint64_t kStart = 12;

}  // namespace

NpzFile::NpzFile(InputFile file) : zip_(std::move(file)) {
  for (std::size_t i = 0; i < zip_.members().size(); ++i) {
    std::string name = zip_.members()[i].name;
    if (name.ends_with(kExtension)) {
      name.resize(name.size() - kExtension.size());
      places_.emplace(std::move(name), i);
    } else {
      others_.push_back(std::move(name));
    }
  }
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const ZipMember& member : zip_.members()) {
    if (!member.name.ends_with(kExtension)) continue;
    names.push_back(member.name.substr(0, member.name.size() - kExtension.size()));
  }
  return names;
}

bool NpzFile::has(std::string_view name) const { return places_.contains(name); }

const ZipMember& NpzFile::member(std::string_view name) const {
  auto place = places_.find(name);
  if (place == places_.end() && name.ends_with(kExtension)) {
    place = places_.find(name.substr(0, name.size() - kExtension.size()));
  }
  if (place == places_.end()) throw no_such_tensor(path(), name, names(), "tensors");
  return zip_.members()[place->second];
}

TensorInfo NpzFile::info(std::string_view name) const {
  const ZipMember& found = member(name);
  const std::string source = path() + ":" + std::string(name);
  const std::uint64_t start = npy_data_start(zip_.head(found, source, kStart));
  const NpyHeader header = read_npy_header(zip_.head(found, source, start));
  const auto axes = header.shape.axes();
  TensorInfo info = {
      .name = std::string(name),
      .dtype = std::string(dtype_name(header.dtype)),
      .shape = {axes.begin(), axes.end()},
      .bytes = static_cast<std::uint64_t>(header.shape.size()) * dtype_size(header.dtype)};
  if (start > found.size || info.bytes != found.size - start) {
    throw InputError(source, "", std::to_string(found.size) + " bytes",
                     "its header needs " + std::to_string(start + info.bytes));
  }
  return info;
}

AnyTensor NpzFile::read(std::string_view name, std::vector<std::string>& notes) const {
  info(name);
  return read_npy(zip_.open(member(name), path() + ":" + std::string(name)), notes);
}

}  // namespace attnlab
