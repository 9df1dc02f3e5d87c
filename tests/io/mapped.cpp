// Tensors whose elements are a mapped file: they differ in nothing from those that are read.

#include <algorithm>
#include <fstream>

#include "attnlab/io/atomic_file.h"
#include "attnlab/io/npy.h"
#include "attnlab/io/npy_header.h"
#include "attnlab/io/raw_tensor.h"
#include "attnlab/io/safetensors.h"
#include "catch.h"
#include "files.h"
#include "samples.h"

namespace attnlab {
namespace {

using namespace test;

// Above the size that files are mapped from, in every type, and no whole number of pages.
const Shape kBig{3, 43, 2111};

// What reading without a file to map gives.
AnyTensor read_whole(const std::string& path) {
  std::vector<std::string> notes;
  return read_npy(InputFile::in_memory(bytes_of(path), path), notes);
}

std::string save(const TemporaryFolder& folder, const AnyTensor& tensor) {
  const std::string path = folder.path("x.npy");
  write_tensor(path, tensor, "save");
  return path;
}

Tensor<float> counted(const Shape& shape) {
  Tensor<float> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(i);
  return tensor;
}

void overwrite(const std::string& path, std::size_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file << bytes;
}

TEST_CASE("a big npy file of any type is read as it is without mapping") {
  const TemporaryFolder folder;
  for (const DType dtype : kDTypes) {
    if (dtype == DType::bfloat16) continue;  // which NumPy does not have
    INFO(dtype_name(dtype));
    const AnyTensor tensor = awkward(dtype, kBig);
    const std::string path = save(folder, tensor);
    CHECK(identical(read(path), tensor));
    CHECK(identical(read_whole(path), tensor));
  }
}

TEST_CASE("a big npy file of any byte order or order of axes is read as it is without mapping") {
  const TemporaryFolder folder;
  const std::string data(raw_bytes(awkward(DType::float64, kBig)));
  for (const char* type : {"<f8", ">f8"}) {
    for (const char* fortran : {"False", "True"}) {
      INFO(type << fortran);
      // Headers of such lengths let elements begin at every place of a word.
      for (std::size_t blanks = 0; blanks < 8; ++blanks) {
        std::string header = std::string("{'descr': '") + type + "', 'fortran_order': " + fortran +
                             ", 'shape': (3, 43, 2111), }" + std::string(blanks, ' ');
        std::string bytes("\x93NUMPY\x01\x00", 8);
        bytes += static_cast<char>(header.size());
        bytes += '\0';
        const std::string path = folder.file("x.npy", bytes + header + data);
        REQUIRE(identical(read(path), read_whole(path)));
      }
    }
  }
}

TEST_CASE("big safetensors are read as they are without mapping") {
  const TemporaryFolder folder;
  std::vector<NamedTensor> tensors;
  for (const DType dtype : kDTypes) {
    tensors.push_back({std::string(dtype_name(dtype)), awkward(dtype, kBig)});
  }
  const std::string path = folder.path("x.safetensors");
  write_safetensors(path, tensors, "save");
  const SafetensorsFile mapped(path, "q");
  const SafetensorsFile whole(InputFile::in_memory(bytes_of(path), path));
  std::vector<std::string> notes;
  for (const NamedTensor& tensor : tensors) {
    INFO(tensor.name);
    CHECK(identical(mapped.read(tensor.name, notes), tensor.tensor));
    CHECK(identical(whole.read(tensor.name, notes), tensor.tensor));
  }
}

TEST_CASE("a mapped tensor outlives its file") {
  const TemporaryFolder folder;
  const Tensor<float> tensor = counted(kBig);
  const std::string path = save(folder, tensor);
  const AnyTensor mapped = read(path);
  std::filesystem::remove(path);
  CHECK(identical(mapped, tensor));
  save(folder, Tensor<float>(kBig));
  CHECK(identical(mapped, tensor));
}

TEST_CASE("writing to a mapped tensor, or to its copy, leaves the file and the other alone") {
  const TemporaryFolder folder;
  const std::string path = save(folder, counted(kBig));
  const std::string before = bytes_of(path);
  AnyTensor mapped = read(path);
  AnyTensor copy = mapped;
  const AnyTensor second = read(path);
  for (float& value : mapped.get<float>().values()) value += 1;
  for (float& value : copy.get<float>().values()) value += 2;
  CHECK(bytes_of(path) == before);
  CHECK(mapped.at(5) == 6);
  CHECK(copy.at(5) == 7);
  CHECK(second.at(5) == 5);
  Tensor<float> moved = std::move(mapped).cast<float>();
  CHECK(moved[kBig.size() - 1] == static_cast<float>(kBig.size()));
}

TEST_CASE("a tensor that is saved over its own file stays what it was") {
  const TemporaryFolder folder;
  const Tensor<float> tensor = counted(kBig);
  const std::string path = save(folder, tensor);
  const AnyTensor mapped = read(path);
  write_tensor(path, mapped, "save");
  CHECK(identical(mapped, tensor));
  CHECK(identical(read(path), tensor));
}

TEST_CASE("big floats are the file, small ones and other types a copy of it") {
  const TemporaryFolder folder;
  const auto follows_file = [&](const AnyTensor& tensor) {
    const std::string path = save(folder, tensor);
    const AnyTensor got = read(path);
    const double before = got.at(0);
    overwrite(path, bytes_of(path).size() - raw_bytes(tensor).size(), "\x01\x02\x01\x02");
    return got.at(0) != before;
  };
  CHECK(follows_file(Tensor<float>(kBig)));
  CHECK(follows_file(Tensor<Float16>(kBig)));
  CHECK_FALSE(follows_file(Tensor<float>({64, 64})));
  CHECK_FALSE(follows_file(Tensor<std::int32_t>(kBig)));
  CHECK_FALSE(follows_file(Tensor<bool>(kBig)));
}

TEST_CASE("a big file that ends early is refused, whenever it does") {
  const TemporaryFolder folder;
  const std::string path = save(folder, counted(kBig));
  const std::uintmax_t size = std::filesystem::file_size(path);
  const InputFile opened(path, "q");
  std::vector<std::string> notes;
  for (const std::uintmax_t left : {size - 1, size - 4096, std::uintmax_t{128}}) {
    INFO(left);
    std::filesystem::resize_file(path, left);
    CHECK(contains(error_of([&] { read_npy(opened, notes); }),
                   "x.npy: ended early: it changed while it was read"));
    CHECK(contains(read_error(path), "x.npy: expected 272319 elements, the file holds "));
  }
}

TEST_CASE("what has no file behind it is not mapped") {
  const TemporaryFolder folder;
  CHECK_FALSE(InputFile::in_memory("abc", "x").map(0, 3));
  CHECK_FALSE(InputFile(folder.file("x", ""), "q").map(0, 0));
  const InputFile file(folder.file("y", "abc"), "q");
  const auto mapped = file.map(1, 2);
  REQUIRE(mapped);
  CHECK(std::string(static_cast<const char*>(mapped->data()), 2) == "bc");
  CHECK(contains(error_of([&] { file.map(1, 3); }), "ended early"));
}

}  // namespace
}  // namespace attnlab
