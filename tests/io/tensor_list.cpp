#include "attnlab/io/tensor_list.h"

#include "attnlab/io/npy_header.h"
#include "attnlab/io/raw_tensor.h"
#include "attnlab/io/safetensors.h"
#include "catch.h"
#include "files.h"
#include "samples.h"
#include "zip_writer.h"

namespace attnlab {
namespace {

using namespace test;

// "name dtype [2, 3] bytes" of each tensor.
std::vector<std::string> listed(const std::string& path, std::vector<std::string>& notes) {
  std::vector<std::string> lines;
  for (const TensorInfo& info : list_tensors(path, "file", notes)) {
    std::string line = info.name + " " + info.dtype;
    for (const Index length : info.shape) line += " " + std::to_string(length);
    lines.push_back(line + ", " + std::to_string(info.bytes));
  }
  return lines;
}

std::vector<std::string> listed(const std::string& path) {
  std::vector<std::string> notes;
  std::vector<std::string> lines = listed(path, notes);
  CHECK(notes.empty());
  return lines;
}

using Lines = std::vector<std::string>;

TEST_CASE("every format that is read tells what it holds") {
  const TemporaryFolder folder;
  for (const std::string name : {"x.npy", "x.csv", "x.tsv", "x.json"}) {
    INFO(name);
    write_tensor(folder.path(name), Tensor<double>({2, 3}), "save");
    CHECK(listed(folder.path(name)) == Lines{" float64 2 3, 48"});
  }
  CHECK(listed(fixture("two.npz")) == Lines{"q float64 2 3, 48", "k float64 2 3, 48"});
  const std::string path = folder.path("x.safetensors");
  write_safetensors(path, {{"b", Tensor<Float16>({2, 1, 1, 5})}, {"a", Tensor<bool>(Shape{})}}, "");
  CHECK(listed(path) == Lines{"b float16 2 1 1 5, 20", "a bool, 1"});
}

TEST_CASE("a JSON object tells its arrays and numbers, a result those of its result") {
  const TemporaryFolder folder;
  CHECK(listed(folder.file("o.json", R"({"a": [[1, 2]], "t": "x", "s": 2, "m": [true]})")) ==
        Lines{"a float64 1 2, 16", "s float64, 8", "m bool 1, 1"});
  CHECK(listed(folder.file("r.json", R"({"options": 1, "result": {"w": [1]}})")) ==
        Lines{"w float64 1, 8"});
  std::vector<std::string> notes;
  const std::string ragged = folder.file("g.json", R"({"a": [[1], [2, 3]], "b": 1})");
  CHECK(listed(ragged, notes) == Lines{"a , 0", "b float64, 8"});
  REQUIRE(notes.size() == 1);
  CHECK(contains(notes[0], "g.json: a: row 1 has 2 values"));
}

TEST_CASE("what a file holds but no tensor can is listed all the same") {
  const TemporaryFolder folder;
  std::string header = R"({"f":{"dtype":"F8_E4M3","shape":[2,1,1,1,3],"data_offsets":[0,6]}})";
  const std::string path = folder.file("x.safetensors", le(header.size(), 8) + header + "123456");
  CHECK(listed(path) == Lines{"f F8_E4M3 2 1 1 1 3, 6"});
  std::vector<std::string> notes;
  CHECK(listed(fixture("deflated.npz"), notes) ==
        Lines{"layer/q float32 2 3, 24", "k float64 3 2, 48", "flag bool 2, 2", "format , 0"});
  REQUIRE(notes.size() == 1);
  CHECK(contains(notes[0], "deflated.npz:format: descr: got |S3, texts are not read"));
  notes.clear();
  CHECK(
      listed(folder.file("x.npz", zip_of({{.name = "readme.txt", .bytes = "x"}})), notes).empty());
  CHECK(notes == Lines{folder.path("x.npz") + ": readme.txt is no .npy file"});
}

TEST_CASE("listing reads headers alone") {
  const TemporaryFolder folder;
  const Tensor<float> tensor({300, 700});
  std::string npy = npy_preamble(DType::float32, tensor.shape()) + std::string(raw_bytes(tensor));
  for (const bool deflated : {false, true}) {
    const ZipPart part = {.name = "a.npy", .bytes = npy, .deflated = deflated, .crc_error = 1};
    const std::string path = folder.file("x.npz", zip_of({part}));
    CHECK(listed(path) == Lines{"a float32 300 700, 840000"});
    CHECK(contains(read_error(path), "checksum"));
  }
  npy.resize(npy.size() - 4);
  CHECK(contains(error_of([&] { listed(folder.file("x.npy", npy)); }), "expected 210000 elements"));
}

TEST_CASE("a file to be listed that no tensor is read from is refused") {
  const TemporaryFolder folder;
  CHECK(contains(error_of([&] { listed(folder.path("none.npy")); }), "file: got "));
  CHECK(contains(error_of([&] { listed(folder.file("x.txt", "1")); }), "need a file name ending"));
}

}  // namespace
}  // namespace attnlab
