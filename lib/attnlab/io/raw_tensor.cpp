#include "attnlab/io/raw_tensor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "attnlab/core/memory.h"

namespace attnlab {
namespace {

// Copying less costs no more than mapping it.
constexpr std::uint64_t kLeastMapped = std::uint64_t{1} << 18;

template <class T>
Tensor<T> read_elements(const InputFile& file, std::uint64_t offset, const Shape& shape) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::uint64_t bytes = static_cast<std::uint64_t>(shape.size()) * sizeof(T);
  require_memory(bytes, file.name());
  Tensor<T> tensor = Tensor<T>::uninitialized(shape);
  file.read(offset, static_cast<void*>(tensor.data()), static_cast<std::size_t>(bytes));
  return tensor;
}

// The file's own bytes, where they can be had and lie as elements do.
template <class T>
std::optional<Tensor<T>> map_elements(const InputFile& file, std::uint64_t offset,
                                      const Shape& shape) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(shape.size()) * sizeof(T);
  if (bytes < kLeastMapped) return std::nullopt;
  auto buffer = file.map(offset, static_cast<std::size_t>(bytes), alignof(T));
  if (!buffer) return std::nullopt;
  return Tensor<T>::in(*std::move(buffer), shape);
}

template <class T>
void swap_bytes(Tensor<T>& tensor) {
  auto* byte = reinterpret_cast<unsigned char*>(tensor.data());
  for (Index i = 0; i < tensor.size(); ++i, byte += sizeof(T)) std::reverse(byte, byte + sizeof(T));
}

// A bool in memory must be 0 or 1, a byte in a file can be anything.
Tensor<bool> read_booleans(const InputFile& file, std::uint64_t offset, const Shape& shape,
                           std::vector<std::string>& notes) {
  const Tensor<std::uint8_t> bytes = read_elements<std::uint8_t>(file, offset, shape);
  const auto values = bytes.values();
  if (std::any_of(values.begin(), values.end(), [](std::uint8_t b) { return b > 1; })) {
    notes.push_back(file.name() + ": booleans other than 0 and 1 are taken for true");
  }
  Tensor<bool> booleans = Tensor<bool>::uninitialized(shape);
  std::transform(values.begin(), values.end(), booleans.data(),
                 [](std::uint8_t b) { return b != 0; });
  return booleans;
}

}  // namespace

AnyTensor read_raw_tensor(const InputFile& file, std::uint64_t offset, DType dtype,
                          const Shape& shape, bool big_endian, std::vector<std::string>& notes) {
  return visit_dtype(dtype, [&](auto tag) -> AnyTensor {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return read_booleans(file, offset, shape, notes);
    } else {
      // Floats only: others may be checked once and then trusted, but the file may still change.
      if (is_floating(dtype) && !big_endian) {
        if (auto mapped = map_elements<T>(file, offset, shape)) return *std::move(mapped);
      }
      Tensor<T> tensor = read_elements<T>(file, offset, shape);
      if (big_endian) swap_bytes(tensor);
      return tensor;
    }
  });
}

std::string_view raw_bytes(const AnyTensor& tensor) {
  return tensor.visit([](const auto& t) {
    return std::string_view(reinterpret_cast<const char*>(t.data()),
                            static_cast<std::size_t>(t.size()) * sizeof(*t.data()));
  });
}

}  // namespace attnlab
