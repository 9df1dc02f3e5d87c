#include "attnlab/io/json.h"
#include "catch.h"
#include "files.h"
#include "samples.h"

namespace attnlab {
namespace {

using namespace test;

AnyTensor tensor_of(const std::string& text) {
  return tensor_from_json(parse_json(text, "x.json"), "x.json", "q");
}

std::string tensor_error(const std::string& text) {
  return error_of([&] { tensor_of(text); });
}

TEST_CASE("nested arrays of numbers are a float64 tensor") {
  CHECK(tensor_of("[[1,2,3],[4,5,6]]").shape() == Shape{2, 3});
  CHECK(tensor_of("[[1,2,3],[4,5,6]]").dtype() == DType::float64);
  CHECK(values(tensor_of("[[[1],[-2.5]],[[3e2],[4]]]")) == std::vector<double>{1, -2.5, 300, 4});
  CHECK(tensor_of("[[[[7]]]]").shape() == Shape{1, 1, 1, 1});
  CHECK(tensor_of("3").shape() == Shape{});
  CHECK(tensor_of("18446744073709551615").at(0) == 18446744073709551616.0);
}

TEST_CASE("the three strings are the only ones in a tensor") {
  const auto odd = values(tensor_of("[\"NaN\", \"Infinity\", \"-Infinity\"]"));
  CHECK(std::isnan(odd[0]));
  CHECK(odd[1] == std::numeric_limits<double>::infinity());
  CHECK(odd[2] == -std::numeric_limits<double>::infinity());
  CHECK(contains(tensor_error("[[1, \"2\"]]"), "x.json: q[0][1]: got \"2\", need a number"));
  CHECK(contains(tensor_error("[\"nan\"]"), "q[0]: got \"nan\", need a number"));
  CHECK(contains(tensor_error("\"Inf\""), "q: got \"Inf\", need a number"));
}

TEST_CASE("what is no number is refused with its index") {
  CHECK(contains(read_error(fixture("null.json")), "null.json: q[0][1]: got null, need a number"));
  CHECK(contains(read_error(fixture("null.json") + ":q"), "q[0][1]: got null"));
  CHECK(contains(tensor_error("[[1],[{\"a\":1}]]"), "q[1][0]: got an object, need a number"));
  CHECK(contains(tensor_error("[1, true]"), "q[1]: got true, need a number"));
  CHECK(contains(tensor_error("null"), "q: got null, need a number"));
}

TEST_CASE("ragged and empty arrays are refused") {
  CHECK(contains(read_error(fixture("ragged.json")), "q: row 1 has 1 value, expected 2"));
  CHECK(contains(read_error(fixture("emptyarr.json")), "q: got [], need at least one value"));
  CHECK(contains(tensor_error("[[1],[]]"), "q: row 1 has 0 values, expected 1"));
  CHECK(contains(tensor_error("[[],[1]]"), "q[0]: got [], need at least one value"));
  CHECK(contains(tensor_error("[[[1,2],[3]]]"), "q[0]: row 1 has 1 value, expected 2"));
  CHECK(contains(tensor_error("[[[1],[2]],[[3]]]"), "q: row 1 has 1 value, expected 2"));
  CHECK(contains(tensor_error("[1,[2]]"), "q[1]: got an array, need a number"));
  CHECK(contains(tensor_error("[[1,2],3]"), "q[1]: got 3, need an array of 2 values"));
  CHECK(contains(tensor_error("[[[[[1]]]]]"), "nested deeper than 4 arrays"));
  // Ten thousand rows that claim ten thousand values must not be allocated before they are counted.
  std::string text = "[[1";
  for (int i = 1; i < 10000; ++i) text += ",1";
  text += "]";
  for (int i = 1; i < 10000; ++i) text += ",[1]";
  CHECK(contains(tensor_error(text + "]"), "row 1 has 1 value, expected 10000"));
}

TEST_CASE("nested arrays of true and false are a boolean tensor") {
  const AnyTensor mask = tensor_of("[[true, false], [false, true]]");
  CHECK(mask.dtype() == DType::boolean);
  CHECK(values(mask) == std::vector<double>{1, 0, 0, 1});
  CHECK(contains(tensor_error("[true, 0]"), "q[1]: got 0, need true or false"));
}

TEST_CASE("every type is written as JSON and read back with the same values") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.json");
  for (const DType dtype : kDTypes) {
    for (const Shape& shape :
         {Shape{}, Shape{13}, Shape{5, 3}, Shape{2, 1, 7}, Shape{2, 3, 2, 2}}) {
      INFO(dtype_name(dtype) << shape.str());
      const AnyTensor tensor = awkward(dtype, shape);
      write_tensor(path, tensor, "save");
      CHECK(same_values(read(path), tensor));
      CHECK(bytes_of(path) == dump_json(tensor_to_json(tensor)) + "\n");
    }
  }
  for (const Shape& empty : {Shape{0}, Shape{2, 0}, Shape{0, 2}}) {
    write_tensor(path, Tensor<float>(empty), "save");
    CHECK(bytes_of(path) == dump_json(tensor_to_json(Tensor<float>(empty))) + "\n");
  }
}

TEST_CASE("a tensor longer than the writer's buffer arrives whole") {
  const TemporaryFolder folder;
  Tensor<double> tensor({700, 300});
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = 1.0 / static_cast<double>(i + 1);
  for (const std::string name : {"x.json", "x.csv"}) {
    write_tensor(folder.path(name), tensor, "save");
    CHECK(same_values(read(folder.path(name)), tensor));
  }
}

TEST_CASE("a matrix in JSON has one line a row") {
  const TemporaryFolder folder;
  write_tensor(folder.path("x.json"), Tensor<float>({2, 2}, {0.1f, -0.0f, 3, 4}), "save");
  CHECK(bytes_of(folder.path("x.json")) == "[\n  [0.10000000149011612, -0.0],\n  [3, 4]\n]\n");
}

}  // namespace
}  // namespace attnlab
