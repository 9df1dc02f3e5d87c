#include "attnlab/io/case_file.h"

#include "catch.h"
#include "files.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;
using namespace test;

CaseDescription sample() {
  CaseDescription description;
  description.dtype = DType::bfloat16;
  description.inputs = {"q", "key_lengths"};
  description.matrices = {
      {"q", "", {"row", "column"}, {}},
      {"output", "weights v", {"batch", "row", "column"}, {{DType::bfloat16, {.5, std::nullopt}}}}};
  return description;
}

// A folder with this case.json.
std::string case_of(const TemporaryFolder& folder, const std::string& json) {
  fs::create_directory(folder.path("case"));
  folder.file("case/case.json", json);
  return folder.path("case");
}

std::string refusal_of(const std::string& json) {
  const TemporaryFolder folder;
  const std::string path = case_of(folder, json);
  return error_of([&] { read_case(path, "a"); });
}

TEST_CASE("a description of a case reads back as it was written") {
  const TemporaryFolder folder;
  const std::string path = case_of(folder, case_json(sample()));
  REQUIRE(is_case(path));
  const CaseDescription got = read_case(path, "a");
  CHECK(got.dtype == DType::bfloat16);
  CHECK(got.inputs == sample().inputs);
  REQUIRE(got.matrices.size() == 2);
  CHECK(got.matrices[1].name == "output");
  CHECK(got.matrices[1].formula == "weights v");
  CHECK(got.matrices[1].axes == std::vector<std::string>{"batch", "row", "column"});
  const CaseError& error = got.matrices[1].plain.at(DType::bfloat16);
  CHECK(error.max_abs_error == .5);
  CHECK_FALSE(error.relative_norm.has_value());
  CHECK(got.matrices[0].plain.empty());
}

TEST_CASE("a folder without a case.json is none") {
  const TemporaryFolder folder;
  CHECK_FALSE(is_case(folder.path(".")));
  CHECK_FALSE(is_case(folder.file("case.json", "{}")));
  CHECK_FALSE(is_case(folder.path("nowhere")));
  const fs::path here = fs::current_path();
  fs::current_path(folder.path("."));
  CHECK_FALSE(is_case(""));
  fs::current_path(here);
  CHECK(contains(error_of([&] { read_case(folder.path("nowhere"), "a"); }), "cannot be read"));
}

TEST_CASE("what is wrong with a case.json is told with its place") {
  const std::string good = case_json(sample());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string json = good;
    const std::size_t at = json.find(from);
    REQUIRE(at != std::string::npos);
    return refusal_of(json.replace(at, from.size(), to));
  };
  CHECK(contains(refusal_of("{}"), "case.json: got {}, need a case"));
  CHECK(contains(refusal_of("[1]"), "need a case"));
  CHECK(contains(changed("\"case\": 1", "\"case\": 2"), "case: got 2, need 1"));
  CHECK(contains(changed("bfloat16", "int8"), "dtype: got \"int8\""));
  CHECK(contains(changed("[\"q\", \"key_lengths\"]", "3"), "inputs: got 3, need a list"));
  // Names become paths.
  CHECK(contains(changed("\"output\"", "\"../../etc/x\""), "name: got \"../../etc/x\", need a"));
  CHECK(contains(changed("\"key_lengths\"", "\"\""), "inputs: got \"\", need a name"));
  CHECK(contains(changed("\"weights v\"", "7"), "formula: got 7, need text"));
  CHECK(contains(changed("\"batch\", \"row\"", "\"row\", \"batch\""), "axes: got "));
  CHECK(contains(changed("\"batch\", \"row\"", "\"tile\", \"row\""), "axes: got "));
  CHECK(contains(changed("\"max_abs_error\": 0.5", "\"max_abs_error\": [0.5]"), "need a number"));
  for (const std::string number : {"\"x\"", "-1", "true", "\"NaN\""}) {
    CHECK(contains(changed("\"max_abs_error\": 0.5", "\"max_abs_error\": " + number),
                   "max_abs_error: got " + number + ", need a number, 0 or more"));
  }
  CHECK(contains(changed("\"name\": \"output\"", "\"name\": \"q\""),
                 "matrices: got \"q\", is there twice"));
}

TEST_CASE("a case may replace nothing, an empty folder or a case, and no other") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path) {
    return error_of([&] { check_case_target(path, "save_case"); });
  };
  CHECK(refused(folder.path("new")).empty());
  fs::create_directory(folder.path("empty"));
  CHECK(refused(folder.path("empty")).empty());
  fs::create_directory(folder.path("other"));
  folder.file("other/thesis.txt", "x");
  CHECK(contains(refused("-"), "save_case: got -, need a folder"));
  CHECK(contains(refused(folder.path("other")), "is a folder and no case: it is left as it is"));

  const std::string path = case_of(folder, case_json(sample()));
  for (const char* name : {"config.json", "q.npy", "key_lengths.npy", "output.npy"}) {
    folder.file(std::string("case/") + name, "");
  }
  fs::create_directory(path + "/reference");
  folder.file("case/reference/output.npy", "");
  CHECK(refused(path).empty());
  CHECK(refused(path + "/").empty());
  folder.file("case/reference/mine.npy", "");
  CHECK(contains(refused(path), "holds reference/mine.npy too, which is no part of a case"));
  fs::remove(path + "/reference/mine.npy");
  fs::create_directory(path + "/notes");
  CHECK(contains(refused(path), "holds notes too"));
  fs::remove(path + "/notes");
  fs::create_directory_symlink("/tmp", path + "/mean_of_all_keys");
  CHECK(contains(refused(path), "holds mean_of_all_keys too"));
}

}  // namespace
}  // namespace attnlab
