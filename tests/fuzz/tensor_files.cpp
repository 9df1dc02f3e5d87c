#include "attnlab/core/error.h"
#include "attnlab/io/json.h"
#include "attnlab/io/tensor_file.h"
#include "catch.h"
#include "fuzz/mutate.h"
#include "io/files.h"
#include "io/samples.h"
#include "io/zip_writer.h"

namespace attnlab {
namespace {

using namespace test;

// How a reader took some bytes; any other exception leaves it and fails the test.
bool is_read(const std::string& bytes, TensorFormat format) {
  std::vector<std::string> notes;
  try {
    const AnyTensor tensor = read_tensor(InputFile::in_memory(bytes, "x"), "", format, notes);
    // Whatever was taken is whole: every element can be looked at.
    double sum = 0;
    for (Index i = 0; i < tensor.size(); ++i) sum += tensor.at(i);
    return sum == sum || tensor.size() > 0;
  } catch (const InputError&) {
    return false;
  }
}

std::vector<std::string> samples(const std::string& name) {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (const DType dtype : kDTypes) {
    write_tensor(folder.path(name), awkward(dtype, {2, 3}), "save");
    files.push_back(bytes_of(folder.path(name)));
  }
  return files;
}

std::vector<std::string> fixtures(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) files.push_back(bytes_of(fixture(name)));
  return files;
}

void fuzz(const std::vector<std::string>& files, TensorFormat format, std::uint64_t seed) {
  Bits bits(seed);
  int taken = 0;
  for (int run = 0; run < 6000; ++run) {
    std::string bytes = files[bits.below(files.size())];
    CAPTURE(run);
    for (std::size_t n = 1 + bits.below(4); n > 0; --n) mutate(bytes, bits);
    taken += is_read(bytes, format);
  }
  // Mutations that are all refused at the first byte would test nothing.
  CHECK(taken > 50);
  CHECK(taken < 5950);
}

TEST_CASE("a mutated npy file is read or refused") {
  std::vector<std::string> files = samples("x.npy");
  for (std::string& more : fixtures({"fortran_f8.npy", "v2.npy", "be_f8.npy", "bool.npy"})) {
    files.push_back(std::move(more));
  }
  fuzz(files, TensorFormat::npy, 1);
}

TEST_CASE("a mutated CSV or TSV file is read or refused") {
  fuzz(samples("x.csv"), TensorFormat::csv, 2);
  fuzz(samples("x.tsv"), TensorFormat::tsv, 3);
}

TEST_CASE("a mutated JSON file is read or refused") {
  std::vector<std::string> files = samples("x.json");
  for (std::string& more : fixtures({"bom.json", "dup.json", "nan.json", "ragged.json"})) {
    files.push_back(std::move(more));
  }
  files.push_back(R"({"version": "1", "result": {"q": [[true, false]]}})");
  fuzz(files, TensorFormat::json, 4);
}

TEST_CASE("a mutated safetensors file is read or refused") {
  fuzz(fixtures({"ok.safetensors", "bf16.safetensors", "overlap.safetensors"}),
       TensorFormat::safetensors, 5);
}

TEST_CASE("a mutated npz file, or one of a mutated array, is read or refused") {
  const std::vector<std::string> arrays = samples("x.npy");
  Bits bits(7);
  int taken = 0;
  for (int run = 0; run < 6000; ++run) {
    ZipPart part = {.name = "a.npy", .bytes = arrays[bits.below(arrays.size())]};
    part.deflated = bits.below(2) == 1;
    part.wide = bits.below(2) == 1;
    const bool inside = bits.below(2) == 1;
    if (inside) mutate(part.bytes, bits);
    std::string zip = zip_of({part}, {.wide = part.wide});
    if (!inside) mutate(zip, bits);
    CAPTURE(run);
    taken += is_read(zip, TensorFormat::npz);
  }
  CHECK(taken > 50);
  CHECK(taken < 5950);
}

TEST_CASE("a mutated JSON document that is taken is written as JSON again") {
  Bits bits(6);
  const std::string text =
      R"({"a": [1, -2.5e3, "x\u00e9"], "b": {"c": [[1, 2], [3, 4]], "d": null}})";
  int taken = 0;
  for (int run = 0; run < 6000; ++run) {
    std::string bytes = text;
    for (std::size_t n = 1 + bits.below(3); n > 0; --n) mutate(bytes, bits);
    CAPTURE(bytes);
    try {
      const Json json = parse_json(bytes, "x");
      ++taken;
      CHECK(parse_json(dump_json(json), "x") == json);
    } catch (const InputError&) {
    }
  }
  CHECK(taken > 50);
}

}  // namespace
}  // namespace attnlab
