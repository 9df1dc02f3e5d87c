#include "attnlab/io/safetensors.h"

#include "catch.h"
#include "files.h"
#include "samples.h"

namespace attnlab {
namespace {

using namespace test;

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return bytes + header + data;
}

SafetensorsFile opened(const std::string& bytes) {
  return SafetensorsFile(InputFile::in_memory(bytes, "x.safetensors"));
}

std::string open_error(const std::string& header, std::size_t data_bytes) {
  return error_of([&] { opened(safetensors_bytes(header, std::string(data_bytes, '\0'))); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

std::string object(const std::string& members) {
  std::string text = "{";
  return text.append(members).append("}");
}

TEST_CASE(
    "a tensor of a safetensors file is read by its name, or without when it is the only one") {
  const std::vector<double> one_to_six = {1, 2, 3, 4, 5, 6};
  const AnyTensor weights = read(fixture("ok.safetensors") + ":wq");
  CHECK(weights.dtype() == DType::float32);
  CHECK(weights.shape() == Shape{2, 3});
  CHECK(values(weights) == one_to_six);
  CHECK(values(read(fixture("ok.safetensors"))) == one_to_six);
  CHECK(read(fixture("bf16.safetensors") + ":a").dtype() == DType::bfloat16);
  CHECK(values(read(fixture("bf16.safetensors") + ":a")) == one_to_six);
}

TEST_CASE("a safetensors header longer than the file is refused before it is allocated") {
  CHECK(contains(read_error(fixture("bomb_u64max.safetensors")),
                 "header length: got 18446744073709551615, the format allows at most 100000000"));
  CHECK(contains(read_error(fixture("bomb_1TB.safetensors")), "header length: got 10"));
  CHECK(contains(error_of([] { opened(std::string("\x64\0\0\0\0\0\0\0{}", 10)); }),
                 "header length: got 100, the file holds 2 bytes after it"));
  CHECK(contains(error_of([] { opened("1234567"); }), "got 7 bytes in the file, need 8"));
  CHECK(contains(open_error("", 0), "header: need a JSON object"));
  CHECK(contains(open_error("[]", 0), "header: got [], need a JSON object"));
  CHECK(contains(open_error("{} x", 0), "x.safetensors: header: line 1, column 4"));
}

TEST_CASE("a safetensors file whose tensors do not fill its data is refused by the tensor's name") {
  CHECK(contains(read_error(fixture("overlap.safetensors")),
                 "overlap.safetensors: b: got data_offsets [8, 24], they overlap those of a"));
  CHECK(contains(read_error(fixture("mismatch.safetensors")),
                 "a: got F32 of shape [1000000], it needs 4000000 bytes, data_offsets hold 24"));
  CHECK(contains(read_error(fixture("short.safetensors")),
                 "a: got data_offsets [0, 24], the file holds 10 bytes of data"));
  const std::string a = entry("a", "F32", "[1]", "[0,4]");
  CHECK(contains(open_error(object(a + "," + entry("b", "F32", "[1]", "[8,12]")), 12),
                 "b: got data_offsets [8, 12], the bytes from 4 on belong to no tensor"));
  CHECK(contains(open_error(object(a), 5), "data: got 5 bytes, the tensors end after 4"));
  CHECK(contains(open_error(object(entry("b", "F32", "[1]", "[1,5]")), 5),
                 "b: got data_offsets [1, 5], the bytes from 0 on"));
  CHECK(contains(open_error("{}", 1), "the tensors end after 0"));
  CHECK(open_error("{}", 0).empty());
  CHECK(open_error(object(entry("e", "F32", "[0]", "[4,4]") + "," + a), 4).empty());
}

TEST_CASE("a wrong entry of a safetensors header is refused by the tensor's name") {
  const auto wrong = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return open_error(object(entry("w", dtype, shape, offsets)), 4);
  };
  CHECK(contains(wrong("F32", "[1]", "[4,0]"), "w: got [4, 0], data_offsets: need begin <= end"));
  CHECK(contains(wrong("F32", "[4294967296,4294967296]", "[0,4]"), "w: got F32 of shape"));
  CHECK(contains(wrong("F32", "[4294967296,4294967296]", "[0,4]"), "overflows"));
  CHECK(contains(wrong("F32", "[1073741824,1073741824,16,0]", "[0,4]"), "overflows"));
  CHECK(contains(wrong("F32", "[-1]", "[0,4]"), "shape: need lengths of 0 or more"));
  CHECK(contains(wrong("F32", "[1.5]", "[0,4]"), "shape: need lengths of 0 or more"));
  CHECK(contains(wrong("F32", "[18446744073709551615]", "[0,4]"), "shape: need lengths"));
  CHECK(contains(wrong("F32", "1", "[0,4]"), "shape: need an array"));
  CHECK(contains(wrong("F32", "[1]", "[0]"), "data_offsets: need two numbers"));
  CHECK(contains(wrong("F32", "[1]", "[-4,0]"), "data_offsets: need two numbers"));
  CHECK(contains(wrong("F31", "[1]", "[0,4]"), "w: got \"F31\", need a known dtype"));
  CHECK(contains(wrong("F4", "[7]", "[0,4]"), "need a whole number of bytes"));
  CHECK(contains(open_error("{\"w\":1}", 4), "w: need an object with dtype"));
  CHECK(contains(open_error("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4),
                 "w: has no data_offsets"));
  CHECK(
      contains(open_error("{\"w\":{\"dtype\":\"F32\",\"x\":[1]}}", 4), "w: got x, need the keys"));
  CHECK(contains(open_error("{\"w\":{\"dtype\":[\"F32\"],\"shape\":[],\"data_offsets\":[0,4]}}", 4),
                 "w: got another dtype"));
  const std::string a = entry("a", "F32", "[1]", "[0,4]");
  CHECK(contains(open_error(object(a + "," + a), 4), "a: the key stands twice"));
}

TEST_CASE("safetensors metadata is an object of texts") {
  const auto file = opened(safetensors_bytes("{\"__metadata__\":{\"format\":\"pt\"}}  ", ""));
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.tensors().empty());
  CHECK(contains(open_error("{\"__metadata__\":{\"a\":1}}", 0), "__metadata__: need an object of"));
  CHECK(contains(open_error("{\"__metadata__\":\"a\"}", 0), "__metadata__: need an object of"));
}

TEST_CASE("a safetensors file lists types and ranks that are not read, and refuses them by name") {
  const auto file = opened(safetensors_bytes(object(entry("f8", "F8_E4M3", "[2]", "[0,2]") + "," +
                                                    entry("five", "U8", "[1,1,1,1,2]", "[2,4]") +
                                                    "," + entry("b", "BOOL", "[2]", "[4,6]")),
                                             std::string("\0\0\0\0\0\x05", 6)));
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].dtype == "F8_E4M3");
  CHECK(file.tensors()[1].shape == std::vector<Index>{1, 1, 1, 1, 2});
  std::vector<std::string> notes;
  CHECK(contains(error_of([&] { file.read("f8", notes); }), "f8: got F8_E4M3, tensors of this"));
  CHECK(
      contains(error_of([&] { file.read("five", notes); }), "five: got [1, 1, 1, 1, 2], need at"));
  CHECK(values(file.read("b", notes)) == std::vector<double>{0, 1});
  CHECK(notes.size() == 1);
}

TEST_CASE("a name that a safetensors file has not is answered with those it has") {
  CHECK(contains(read_error(fixture("ok.safetensors") + ":wk"),
                 "ok.safetensors: got wk, need one of its tensors: wq, did you mean wq?"));
  CHECK(contains(read_error(fixture("overlap.safetensors") + ":c"), "they overlap"));
  const TemporaryFolder folder;
  const std::string path = folder.path("x.safetensors");
  write_safetensors(path, {{"a", Tensor<float>(Shape{1})}, {"b", Tensor<float>(Shape{1})}}, "save");
  CHECK(contains(read_error(path), "add :NAME for one of its tensors: a, b"));
}

TEST_CASE("every type is written to safetensors and read back bit by bit") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.safetensors");
  std::vector<NamedTensor> tensors;
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : {Shape{}, Shape{12}, Shape{0, 3}, Shape{3, 5}, Shape{2, 2, 2, 3}}) {
      tensors.push_back({std::string(dtype_name(dtype)) + shape.str(), awkward(dtype, shape)});
    }
  }
  write_safetensors(path, tensors, "save", {{"format", "pt"}});
  const SafetensorsFile file(path, "params");
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.tensors().size() == tensors.size());
  std::vector<std::string> notes;
  for (const NamedTensor& named : tensors) {
    INFO(named.name);
    REQUIRE(file.has(named.name));
    CHECK(identical(file.read(named.name, notes), named.tensor));
  }
  CHECK(notes.empty());
  CHECK_FALSE(file.has("float31"));
}

TEST_CASE("safetensors data lies as the reference implementation lays it") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.safetensors");
  write_safetensors(path,
                    {{"b", Tensor<float>({1}, {1})},
                     {"z", Tensor<double>({1}, {2})},
                     {"a", Tensor<float>({1}, {3})},
                     {"m", Tensor<bool>({1}, {true})}},
                    "save");
  // safetensors.numpy.save of the same dictionary.
  std::string header =
      "{\"z\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]},"
      "\"m\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[16,17]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  CHECK(
      bytes_of(path) ==
      safetensors_bytes(header, std::string("\0\0\0\0\0\0\0\x40\0\0\x40\x40\0\0\x80\x3f\x01", 17)));
  const auto info = safetensors_info(path, "params");
  REQUIRE(info.size() == 4);
  CHECK(info[0].name == "z");
  CHECK(info[0].dtype == "F64");
  CHECK(info[0].shape == std::vector<Index>{1});
  CHECK(info[0].bytes == 8);
}

TEST_CASE("two tensors of one name are not written to safetensors") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.safetensors");
  const NamedTensor a{"a", Tensor<float>(Shape{1})};
  CHECK(contains(error_of([&] {
                   write_safetensors(path, {a, a}, "save-params");
                 }),
                 "two tensors cannot be named a"));
  CHECK(!error_of([&] {
           write_safetensors(path, {{"__metadata__", a.tensor}}, "save-params");
         }).empty());
  CHECK(folder.entries() == 0);
}

}  // namespace
}  // namespace attnlab
