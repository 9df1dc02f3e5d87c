#include <algorithm>
#include <array>

#include "attnlab/core/error.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/json.h"
#include "attnlab/io/raw_tensor.h"
#include "attnlab/io/safetensors.h"
#include "attnlab/io/safetensors_dtype.h"

namespace attnlab {
namespace {

std::size_t type_place(DType dtype) {
  const auto type =
      std::find_if(kSafetensorsTypes.begin(), kSafetensorsTypes.end(),
                   [&](const SafetensorsType& known) { return known.dtype == dtype; });
  return static_cast<std::size_t>(type - kSafetensorsTypes.begin());
}

std::vector<const NamedTensor*> laid_out(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> order;
  order.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const std::size_t type_a = type_place(a->tensor.dtype());
    const std::size_t type_b = type_place(b->tensor.dtype());
    return type_a != type_b ? type_a > type_b : a->name < b->name;
  });
  return order;
}

void check_names(const std::vector<NamedTensor>& tensors, const std::string& path,
                 std::string_view field) {
  std::map<std::string_view, int> count;
  for (const NamedTensor& tensor : tensors) {
    if (++count[tensor.name] > 1 || tensor.name == "__metadata__") {
      throw InputError("", field, path, "two tensors cannot be named " + tensor.name);
    }
  }
}

std::string header_of(const std::vector<const NamedTensor*>& order,
                      const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const NamedTensor* named : order) {
    const std::uint64_t end = offset + raw_bytes(named->tensor).size();
    Json entry = Json::object();
    entry["dtype"] = kSafetensorsTypes[type_place(named->tensor.dtype())].name;
    const auto lengths = named->tensor.shape().axes();
    entry["shape"] = std::vector<Index>(lengths.begin(), lengths.end());
    entry["data_offsets"] = {offset, end};
    header[named->name] = std::move(entry);
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kAlignment = 8;
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       std::string_view field, const std::map<std::string, std::string>& metadata) {
  check_names(tensors, path, field);
  const std::vector<const NamedTensor*> order = laid_out(tensors);
  const std::string header = header_of(order, metadata);
  const std::uint64_t length = header.size();
  std::uint64_t bytes = sizeof(length) + length;
  for (const NamedTensor* named : order) bytes += raw_bytes(named->tensor).size();
  AtomicFile file(path, field);
  file.expect(bytes);
  file.write({reinterpret_cast<const char*>(&length), sizeof(length)});
  file.write(header);
  for (const NamedTensor* named : order) file.write(raw_bytes(named->tensor));
  file.commit();
}

}  // namespace attnlab
