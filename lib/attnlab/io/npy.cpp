#include "attnlab/io/npy.h"

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/io/raw_tensor.h"

namespace attnlab {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy itself refuses headers above 10000 bytes unless they are trusted.
constexpr std::uint64_t kMostHeader = 1 << 20;

struct HeaderPlace {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
};

// Where the header's text stands: after the magic, the version and its own length, which has 2
// bytes in version 1 and 4 since.
HeaderPlace find_header(const InputFile& file) {
  const std::string start = file.head(12);
  const auto byte = [&](std::size_t i) -> std::uint64_t {
    return i < start.size() ? static_cast<unsigned char>(start[i]) : 0;
  };
  if (start.substr(0, kMagic.size()) != kMagic) {
    throw InputError(file.name(), "", "", "is not a .npy file: it does not begin with \\x93NUMPY");
  }
  const std::uint64_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0) {
    throw InputError(file.name(), "version",
                     std::to_string(version) + "." + std::to_string(byte(7)),
                     "need 1.0, 2.0 or 3.0");
  }
  HeaderPlace place;
  place.start = version == 1 ? 10 : 12;
  place.size = byte(8) | byte(9) << 8;
  if (version > 1) place.size |= byte(10) << 16 | byte(11) << 24;
  if (place.size > kMostHeader) {
    throw InputError(file.name(), "header", std::to_string(place.size) + " bytes",
                     "need at most " + std::to_string(kMostHeader));
  }
  return place;
}

void check_size(const InputFile& file, std::uint64_t data_start, const NpyHeader& header,
                std::vector<std::string>& notes) {
  const auto expected = static_cast<std::uint64_t>(header.shape.size());
  const std::uint64_t element = dtype_size(header.dtype);
  const std::uint64_t bytes = file.size() - data_start;
  if (bytes / element < expected) {
    throw InputError(file.name(), "", "",
                     "expected " + std::to_string(expected) + " elements, the file holds " +
                         std::to_string(bytes / element));
  }
  if (const std::uint64_t rest = bytes - expected * element; rest > 0) {
    notes.push_back(file.name() + ": " + std::to_string(rest) +
                    " bytes after the array are left out");
  }
}

// The elements of `shape` out of those of the reversed shape: in Fortran order the first index
// runs fastest.
template <class T>
Tensor<T> from_fortran_order(const Tensor<T>& stored, const Shape& shape) {
  std::array<Index, Shape::kMaxRank> n{1, 1, 1, 1};
  std::copy(shape.axes().begin(), shape.axes().end(), n.end() - shape.rank());
  Tensor<T> tensor = Tensor<T>::uninitialized(shape);
  T* next = tensor.data();
  for (Index i = 0; i < n[0]; ++i) {
    for (Index j = 0; j < n[1]; ++j) {
      for (Index k = 0; k < n[2]; ++k) {
        for (Index l = 0; l < n[3]; ++l) *next++ = stored[i + n[0] * (j + n[1] * (k + n[2] * l))];
      }
    }
  }
  return tensor;
}

}  // namespace

std::uint64_t npy_data_start(const InputFile& file) {
  const HeaderPlace place = find_header(file);
  return place.start + place.size;
}

NpyHeader read_npy_header(const InputFile& file) {
  const HeaderPlace place = find_header(file);
  if (file.size() < place.start || place.size > file.size() - place.start) {
    throw InputError(file.name(), "header", std::to_string(file.size()) + " bytes in the file",
                     "need " + std::to_string(place.start + place.size));
  }
  std::string text(static_cast<std::size_t>(place.size), '\0');
  file.read(place.start, text.data(), text.size());
  return parse_npy_header(text, file.name());
}

NpyHeader read_checked_npy_header(const InputFile& file, std::vector<std::string>& notes) {
  NpyHeader header = read_npy_header(file);
  check_size(file, npy_data_start(file), header, notes);
  return header;
}

AnyTensor read_npy(const InputFile& file, std::vector<std::string>& notes) {
  const NpyHeader header = read_checked_npy_header(file, notes);
  const std::uint64_t data_start = npy_data_start(file);
  AnyTensor stored =
      read_raw_tensor(file, data_start, header.dtype, header.shape, header.big_endian, notes);
  if (!header.fortran_order) return stored;
  return stored.visit([&](const auto& t) -> AnyTensor {
    require_memory(static_cast<std::uint64_t>(t.size()) * sizeof(*t.data()), file.name());
    return from_fortran_order(t, header.shape);
  });
}

void write_npy(AtomicFile& file, const AnyTensor& tensor) {
  if (tensor.dtype() == DType::bfloat16) return write_npy(file, tensor.cast(DType::float32));
  const std::string preamble = npy_preamble(tensor.dtype(), tensor.shape());
  const std::string_view elements = raw_bytes(tensor);
  file.expect(preamble.size() + elements.size());
  file.write(preamble);
  file.write(elements);
}

}  // namespace attnlab
