#include "attnlab/experiments/tensors.h"

#include "attnlab/io/safetensors.h"
#include "catch.h"
#include "experiments/inputs.h"
#include "io/files.h"

namespace attnlab {
namespace {

using test::fixture;
using test::TemporaryFolder;

TEST_CASE("a file is listed with the elements and bytes of each tensor and of all") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.safetensors");
  write_safetensors(path, {{"w", Tensor<float>({2, 3})}, {"none", Tensor<float>({0, 5})}}, "");
  const TensorsResult result = tensors({.file = {path}}, {});
  REQUIRE(result.rows.size() == 2);
  CHECK(result.rows[0].name == "none");
  CHECK(result.rows[0].shape == "[0, 5]");
  CHECK(result.rows[0].elements == 0);
  CHECK(result.rows[1].name == "w");
  CHECK(result.rows[1].dtype == "float32");
  CHECK(result.rows[1].elements == 6);
  CHECK(result.rows[1].bytes == 24);
  CHECK(result.elements == 6);
  CHECK(result.bytes == 24);
}

TEST_CASE("what a listing does not know is undefined") {
  const TensorsResult one = tensors({.file = {fixture("c_f8.npy")}}, {});
  REQUIRE(one.rows.size() == 1);
  CHECK_FALSE(one.rows[0].name.has_value());
  CHECK(one.rows[0].elements == 6);
  const TensorsResult archive = tensors({.file = {fixture("deflated.npz")}}, {});
  CHECK(archive.rows.back().name == "format");
  CHECK_FALSE(archive.rows.back().dtype.has_value());
  CHECK_FALSE(archive.rows.back().bytes.has_value());
  CHECK(archive.elements == 14);
  CHECK(mentions(archive.notes, "texts are not read"));
  CHECK(refusal([] { tensors({}, {}); }).find("file: is needed") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
