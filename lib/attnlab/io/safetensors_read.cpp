#include <algorithm>
#include <limits>

#include "attnlab/core/error.h"
#include "attnlab/io/json.h"
#include "attnlab/io/raw_tensor.h"
#include "attnlab/io/safetensors.h"
#include "attnlab/io/safetensors_dtype.h"

namespace attnlab {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeader = 100'000'000;  // the format's own limit

const SafetensorsType* find_type(std::string_view name) {
  const auto type = std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                                 [&](const SafetensorsType& known) { return known.name == name; });
  return type == kSafetensorsTypes.end() ? nullptr : &*type;
}

// The header's JSON; the data begins behind it.
std::string read_header(const InputFile& file) {
  const auto refuse = [&](const std::string& got, const std::string& rule) {
    throw InputError(file.name(), "header length", got, rule);
  };
  if (file.size() < kLengthBytes) {
    refuse(std::to_string(file.size()) + " bytes in the file", "need 8 for the length alone");
  }
  std::uint64_t length = 0;
  file.read(0, &length, sizeof(length));
  if (length > kMostHeader) {
    refuse(std::to_string(length), "the format allows at most " + std::to_string(kMostHeader));
  }
  if (length > file.size() - kLengthBytes) {
    refuse(std::to_string(length),
           "the file holds " + std::to_string(file.size() - kLengthBytes) + " bytes after it");
  }
  std::string header(static_cast<std::size_t>(length), '\0');
  file.read(kLengthBytes, header.data(), header.size());
  if (header.substr(0, 1) != "{") {
    throw InputError(file.name(), "header", header.substr(0, 8), "need a JSON object");
  }
  return header;
}

struct Entry {
  TensorInfo info;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Reads the header's entry of one tensor, which every error names.
class EntryReader {
 public:
  EntryReader(std::string_view source, const std::string& name) : source_(source), name_(name) {}

  Entry read(const Json& json) const {
    if (!json.is_object()) fail("", "need an object with dtype, shape and data_offsets");
    Entry entry;
    entry.info.name = name_;
    for (const auto& [key, value] : json.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail(key, "need the keys dtype, shape and data_offsets only");
      }
    }
    const Json& dtype = member(json, "dtype");
    if (!dtype.is_string() || find_type(dtype.get_ref<const std::string&>()) == nullptr) {
      fail(dtype.is_structured() ? "another dtype" : dump_json(dtype), "need a known dtype");
    }
    entry.info.dtype = dtype.get<std::string>();
    read_shape(member(json, "shape"), entry);
    read_offsets(member(json, "data_offsets"), entry);
    check_bytes(entry);
    return entry;
  }

 private:
  const Json& member(const Json& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) fail("", std::string("has no ") + key);
    return *found;
  }

  void read_shape(const Json& shape, Entry& entry) const {
    if (!shape.is_array()) fail("", "shape: need an array of lengths");
    for (const Json& length : shape) {
      if (!length.is_number_unsigned() ||
          length.get<std::uint64_t>() > std::numeric_limits<Index>::max()) {
        fail(length.is_structured() ? "another shape" : "length " + dump_json(length),
             "shape: need lengths of 0 or more");
      }
      entry.info.shape.push_back(length.get<Index>());
    }
  }

  void read_offsets(const Json& offsets, Entry& entry) const {
    const bool pair = offsets.is_array() && offsets.size() == 2 &&
                      offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
    if (!pair) fail("", "data_offsets: need two numbers of 0 or more");
    entry.begin = offsets[0].get<std::uint64_t>();
    entry.end = offsets[1].get<std::uint64_t>();
    if (entry.begin > entry.end) fail(dump_json(offsets), "data_offsets: need begin <= end");
    entry.info.bytes = entry.end - entry.begin;
  }

  void check_bytes(const Entry& entry) const {
    const std::uint64_t bits = find_type(entry.info.dtype)->bits;
    const std::vector<std::uint64_t> lengths(entry.info.shape.begin(), entry.info.shape.end());
    const auto needed = checked_bytes(lengths, bits);
    const std::string what = entry.info.dtype + " of shape " + dump_json(entry.info.shape);
    if (!needed) fail(what, "the number of elements overflows");
    if (*needed % 8 != 0) fail(what, "need a whole number of bytes");
    if (*needed / 8 != entry.info.bytes) {
      fail(what, "it needs " + std::to_string(*needed / 8) + " bytes, data_offsets hold " +
                     std::to_string(entry.info.bytes));
    }
  }

  [[noreturn]] void fail(std::string_view value, std::string_view rule) const {
    throw InputError(source_, name_, value, rule);
  }

  std::string_view source_;
  const std::string& name_;
};

// The data must be the tensors one after the other, all of it.
void check_layout(std::string_view source, const std::vector<Entry>& sorted,
                  std::uint64_t data_bytes) {
  std::uint64_t covered = 0;
  std::string_view before;
  for (const Entry& entry : sorted) {
    const std::string offsets =
        "data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
    const auto fail = [&](const std::string& rule) {
      throw InputError(source, entry.info.name, offsets, rule);
    };
    if (entry.end > data_bytes) {
      fail("the file holds " + std::to_string(data_bytes) + " bytes of data");
    }
    if (entry.begin < covered) fail("they overlap those of " + std::string(before));
    if (entry.begin > covered) {
      fail("the bytes from " + std::to_string(covered) + " on belong to no tensor");
    }
    covered = entry.end;
    before = entry.info.name;
  }
  if (covered != data_bytes) {
    throw InputError(source, "data", std::to_string(data_bytes) + " bytes",
                     "the tensors end after " + std::to_string(covered));
  }
}

std::map<std::string, std::string> read_metadata(const Json& json, std::string_view source) {
  std::map<std::string, std::string> texts;
  const bool well_formed = json.is_object() && std::all_of(json.begin(), json.end(),
                                                           [](auto& v) { return v.is_string(); });
  if (!well_formed) {
    throw InputError(source, "__metadata__", "", "need an object of texts");
  }
  for (const auto& [key, value] : json.items()) texts[key] = value.template get<std::string>();
  return texts;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path, std::string_view field)
    : SafetensorsFile(InputFile(path, field)) {}

SafetensorsFile::SafetensorsFile(InputFile file) : file_(std::move(file)) {
  const std::string header = read_header(file_);
  const Json json = parse_json(header, file_.name() + ": header");
  std::vector<Entry> entries;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      metadata_ = read_metadata(value, path());
    } else {
      entries.push_back(EntryReader(path(), name).read(value));
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const std::uint64_t data_start = kLengthBytes + header.size();
  check_layout(path(), entries, file_.size() - data_start);
  for (Entry& entry : entries) {
    places_[entry.info.name] = tensors_.size();
    offsets_.push_back(data_start + entry.begin);
    tensors_.push_back(std::move(entry.info));
  }
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const TensorInfo& tensor : tensors_) names.push_back(tensor.name);
  return names;
}

bool SafetensorsFile::has(std::string_view name) const {
  return places_.find(std::string(name)) != places_.end();
}

AnyTensor SafetensorsFile::read(std::string_view name, std::vector<std::string>& notes) const {
  const auto place = places_.find(std::string(name));
  if (place == places_.end()) throw no_such_tensor(path(), name, names(), "tensors");
  const TensorInfo& info = tensors_[place->second];
  const auto dtype = find_type(info.dtype)->dtype;
  if (!dtype) throw InputError(path(), name, info.dtype, "tensors of this type are not read");
  try {
    return read_raw_tensor(file_, offsets_[place->second], *dtype, Shape(info.shape), false, notes);
  } catch (const InputError& error) {
    throw InputError(path(), name, error.value(), error.rule());
  }
}

std::vector<TensorInfo> safetensors_info(const std::string& path, std::string_view field) {
  return SafetensorsFile(path, field).tensors();
}

}  // namespace attnlab
