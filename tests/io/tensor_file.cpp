#include "attnlab/io/tensor_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "attnlab/io/safetensors.h"
#include "catch.h"
#include "files.h"

namespace attnlab {
namespace {

using namespace test;

// Puts `bytes` in place of standard input for as long as it lives.
class StandardInput {
 public:
  explicit StandardInput(const std::string& bytes) : saved_(dup(0)) {
    const std::string path = folder_.file("stdin", bytes);
    const int file = ::open(path.c_str(), O_RDONLY);
    dup2(file, 0);
    ::close(file);
  }
  ~StandardInput() {
    dup2(saved_, 0);
    ::close(saved_);
  }

 private:
  TemporaryFolder folder_;
  int saved_;
};

std::vector<double> from_standard_input(const std::string& bytes, const std::string& source = "-") {
  const StandardInput input(bytes);
  return values(read(source));
}

TEST_CASE("a tensor written in place of a path is given back") {
  std::vector<std::string> notes;
  const AnyTensor tensor =
      read_tensor(TensorSource{"ignored", AnyTensor(Tensor<bool>({1}, {true}))}, "mask", notes);
  CHECK(tensor.dtype() == DType::boolean);
}

TEST_CASE("a path that cannot be read is refused with the option, the path and the reason") {
  CHECK(contains(read_error("/nowhere/x.npy"),
                 "q: got /nowhere/x.npy, cannot be read: No such file or directory"));
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("d.npy"));
  CHECK(contains(read_error(folder.path("d.npy")), "q: got "));
  CHECK(contains(read_error(folder.path("d.npy")), "cannot be read: Is a directory"));
  CHECK(contains(read_error(""), "cannot be read"));
  CHECK(contains(read_error("/nowhere/x.safetensors:w"), "got /nowhere/x.safetensors, cannot be"));
  if (geteuid() != 0) {
    const std::string path = folder.file("secret.npy", "x");
    chmod(path.c_str(), 0);
    CHECK(contains(read_error(path), "Permission denied"));
  }
}

TEST_CASE("a format that is not read is named") {
  const TemporaryFolder folder;
  for (const std::string name : {"x.txt", "x", "x.npy.gz"}) {
    CHECK(contains(read_error(folder.file(name, "1")),
                   "need a file name ending in .npy, .npz, .csv, .tsv, .json or .safetensors"));
  }
  CHECK(values(read(folder.file("x.CSV", "1"))) == std::vector<double>{1});
}

TEST_CASE("a file whose name has a colon wins over FILE:NAME") {
  const TemporaryFolder folder;
  const std::string colon = folder.file("a.json:b.json", "[1]");
  folder.file("a.json", "{\"b.json\": [2], \"c:d\": [3]}");
  CHECK(values(read(colon)) == std::vector<double>{1});
  CHECK(values(read(folder.path("a.json:c:d"))) == std::vector<double>{3});
  std::filesystem::remove(colon);
  CHECK(values(read(colon)) == std::vector<double>{2});
  CHECK(split_source("missing.json:a:b").name == "b");
  CHECK(split_source("missing.json:a:b").path == "missing.json:a");
  CHECK(split_source("missing.json").name.empty());
  CHECK(split_source("-:a:b").path == "-");
  CHECK(split_source("-:a:b").name == "a:b");
}

TEST_CASE("a name picks a member of a JSON object, or of the results in it") {
  const TemporaryFolder folder;
  const std::string path = folder.file(
      "r.json",
      R"({"command": "attend", "options": {"q": 1}, "result": {"output": [[1, 2]], "weights": [3]}})");
  CHECK(values(read(path + ":weights")) == std::vector<double>{3});
  CHECK(contains(read_error(path + ":weigths"),
                 "got weigths, need one of its arrays: output, weights, did you mean weights?"));
  CHECK(contains(read_error(path), "add :NAME for one of its arrays: output, weights"));
  CHECK(contains(read_error(path + ":command"), "got command, need one of") == false);
  CHECK(contains(read_error(path + ":command"), "command: got \"attend\", need a number"));
  const std::string both = folder.file("b.json", R"({"a": [1], "result": {"a": [2]}})");
  CHECK(values(read(both + ":a")) == std::vector<double>{1});
  CHECK(contains(read_error(folder.file("l.json", "[1]") + ":a"), "holds one array and no names"));
  CHECK(contains(read_error(folder.file("e.json", "{}")), "for one of its arrays: none"));
}

TEST_CASE("a name of a file without names is refused") {
  CHECK(contains(read_error(fixture("c_f8.npy") + ":q"), "got q, the file holds one array"));
  CHECK(contains(read_error(fixture("bom_crlf.csv") + ":q"), "got q, the file holds one array"));
}

TEST_CASE("standard input is told apart by its first bytes") {
  const std::vector<double> one_to_six = {1, 2, 3, 4, 5, 6};
  CHECK(from_standard_input(bytes_of(fixture("c_f8.npy"))) == one_to_six);
  CHECK(from_standard_input(bytes_of(fixture("ok.safetensors")), "-:wq") == one_to_six);
  CHECK(from_standard_input(" \n[1,2]") == std::vector<double>{1, 2});
  CHECK(from_standard_input(bytes_of(fixture("bom.json")), "-:q") == std::vector<double>{1, 2});
  CHECK(from_standard_input(bytes_of(fixture("bom_crlf.csv"))) == std::vector<double>{1, 2, 3, 4});
  CHECK(from_standard_input("1\t2\n") == std::vector<double>{1, 2});
  CHECK(from_standard_input("-1, 2\n") == std::vector<double>{-1, 2});
  CHECK(contains(error_of([] { from_standard_input(""); }), "standard input: is empty"));
  CHECK(from_standard_input(bytes_of(fixture("deflated.npz")), "-:layer/q") == one_to_six);
  CHECK(contains(error_of([] { from_standard_input(bytes_of(fixture("two.npz"))); }),
                 "standard input: add :NAME for one of its tensors: q, k"));
  CHECK(contains(error_of([] { from_standard_input("[1,"); }), "standard input: line 1, column 4"));
}

TEST_CASE("a pipe is read whole, its format told by its name or its bytes") {
  const TemporaryFolder folder;
  const std::string bytes = bytes_of(fixture("c_f8.npy"));
  for (const std::string name : {"pipe", "pipe.npy"}) {
    const std::string path = folder.path(name);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    std::jthread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
    CHECK(values(read(path)) == std::vector<double>{1, 2, 3, 4, 5, 6});
  }
  std::string rows;
  for (int i = 0; i < 30000; ++i) rows += "1.25,-3\n";
  const StandardInput input(rows);
  CHECK(read("/dev/stdin").shape() == Shape{30000, 2});
}

TEST_CASE("a target is checked before there is anything to write") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& path) {
    return error_of([&] { check_tensor_target(path, "save"); });
  };
  for (const std::string name : {"x.npy", "x.csv", "x.tsv", "x.json", "x.NPY"}) {
    CHECK(error(folder.path(name)).empty());
  }
  for (const std::string name : {"x.npz", "x.safetensors", "x", "x.txt", ""}) {
    CHECK(contains(error(folder.path(name)), "need a file name ending in .npy, .csv, .tsv or"));
  }
  CHECK(contains(error(folder.path("no/x.npy")), "cannot be written: No such file or directory"));
  CHECK(folder.entries() == 0);
  const AnyTensor one = Tensor<double>({1}, {1});
  CHECK(contains(error_of([&] { write_tensor(folder.path("x.txt"), one, "save"); }),
                 "need a file name ending"));
}

}  // namespace
}  // namespace attnlab
