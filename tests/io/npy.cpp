#include "attnlab/io/npy.h"

#include "attnlab/io/npy_header.h"
#include "catch.h"
#include "files.h"
#include "samples.h"

namespace attnlab {
namespace {

using namespace test;

const std::vector<double> kOneToSix = {1, 2, 3, 4, 5, 6};

// A version 1 file with a header as it is given, not padded.
std::string npy_bytes(const std::string& header, const std::string& data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

AnyTensor parsed(const std::string& bytes) {
  std::vector<std::string> notes;
  return read_npy(InputFile::in_memory(bytes, "x.npy"), notes);
}

std::string parse_error(const std::string& bytes) {
  return error_of([&] { parsed(bytes); });
}

std::string header_error(const std::string& header) {
  return parse_error(npy_bytes(header, std::string(64, '\0')));
}

TEST_CASE("npy files of every order, version and type hold the values NumPy put there") {
  for (const char* name : {"c_f8", "fortran_f8", "v2", "be_f8", "f2", "i8", "le_f4"}) {
    INFO(name);
    const AnyTensor tensor = read(fixture(std::string(name) + ".npy"));
    CHECK(tensor.shape() == Shape{2, 3});
    CHECK(values(tensor) == kOneToSix);
  }
  CHECK(read(fixture("f2.npy")).dtype() == DType::float16);
  CHECK(read(fixture("i8.npy")).dtype() == DType::int64);
  CHECK(read(fixture("le_f4.npy")).dtype() == DType::float32);
}

TEST_CASE("npy booleans, empty arrays, scalars and non-finite numbers are read") {
  const AnyTensor mask = read(fixture("bool.npy"));
  CHECK(mask.dtype() == DType::boolean);
  CHECK(values(mask) == std::vector<double>{0, 0, 1, 1, 1, 1});
  CHECK(mask.shape() == Shape{2, 3});
  CHECK(read(fixture("empty_0x3.npy")).shape() == Shape{0, 3});
  CHECK(read(fixture("zero_d.npy")).shape() == Shape{});
  CHECK(read(fixture("zero_d.npy")).at(0) == 7.5);
  const auto odd = values(read(fixture("nan_inf.npy")));
  CHECK(std::isnan(odd[0]));
  CHECK(std::isinf(odd[1]));
}

TEST_CASE("npy structured types and objects are refused by name") {
  CHECK(contains(read_error(fixture("struct.npy")), "struct.npy: descr: structured types"));
  CHECK(contains(read_error(fixture("object.npy")), "descr: got |O, Python objects"));
  const auto type_error = [](const std::string& descr) {
    return header_error("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }");
  };
  CHECK(contains(type_error("<c16"), "got <c16, complex numbers are not read"));
  CHECK(contains(type_error("<U3"), "texts are not read"));
  CHECK(contains(type_error("|S3"), "texts are not read"));
  CHECK(contains(type_error("<M8[ns]"), "dates and times are not read"));
  CHECK(contains(type_error("|V2"), "bfloat16 saved through NumPy loses its type"));
  CHECK(contains(type_error("<f16"), "need 2, 4 or 8 bytes"));
  CHECK(contains(type_error("<i3"), "got <i3, need a type of NumPy"));
  CHECK(contains(type_error(""), "need a type of NumPy"));
}

TEST_CASE("a npy file shorter than its header claims is refused with both counts") {
  CHECK(contains(read_error(fixture("trunc_data.npy")), "expected 6 elements, the file holds 5"));
  CHECK(contains(read_error(fixture("huge_shape.npy")),
                 "shape: got [4294967296, 4294967296], the number of elements overflows"));
  const auto shape_error = [](const std::string& shape) {
    return header_error("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }");
  };
  CHECK(contains(shape_error("(1000000000000,)"),
                 "expected 1000000000000 elements, the file holds 8"));
  CHECK(contains(shape_error("(2, -3)"), "got [2, -3], need lengths of 0 or more"));
  CHECK(contains(shape_error("(99999999999999999999,)"), "overflows"));
  CHECK(contains(shape_error("(0, 4294967296, 4294967296)"), "overflows"));
  CHECK(contains(shape_error("(1, 1, 1, 1, 1)"), "need at most 4 axes"));
  CHECK(contains(shape_error("(3)"), "need a comma"));
  CHECK(contains(shape_error("[3]"), "need '('"));
  CHECK(contains(shape_error("(2 3)"), "need ','"));
  CHECK(contains(shape_error("(-, 3)"), "need a length"));
  CHECK(contains(shape_error("3"), "need '('"));
}

TEST_CASE("bytes behind a npy array are said in a note") {
  CHECK(values(read(fixture("trail.npy"))) == kOneToSix);
  const auto notes = notes_of(fixture("trail.npy"));
  REQUIRE(notes.size() == 1);
  CHECK(contains(notes[0], "5 bytes after the array are left out"));
  CHECK(notes_of(fixture("c_f8.npy")).empty());
}

TEST_CASE("a npy header is Python: any order of keys, spacing and quotes") {
  const std::string two = std::string("\x01\x00\x02\x00", 4);
  for (const std::string header :
       {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }",
        "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<i2\"}",
        "  {  'shape' : ( 2L , ) ,\n'descr'\t: '=i2' , 'fortran_order' : True}  \n",
        "{'descr': '|i2', 'fortran_order': False, 'shape': (1, 2,), }"}) {
    INFO(header);
    CHECK(values(parsed(npy_bytes(header, two))) == std::vector<double>{1, 2});
  }
  CHECK(parsed(npy_bytes("{'descr':'?','fortran_order':False,'shape':()}", "\x01")).dtype() ==
        DType::boolean);
}

TEST_CASE("a npy header with a wrong key or syntax is refused") {
  const std::string good = "'descr': '<i2', 'fortran_order': False, 'shape': (2,)";
  CHECK(contains(header_error("{" + good + ", 'descr': '<i2'}"), "descr: the key stands twice"));
  CHECK(contains(header_error("{" + good + ", 'extra': 1}"), "header: got extra, need the keys"));
  CHECK(
      contains(header_error("{'descr': '<i2', 'shape': (2,)}"), "fortran_order: the key is miss"));
  CHECK(contains(header_error("{" + good), "header: got its end, need '}'"));
  CHECK(contains(header_error("{" + good + "} x"), "need nothing after the dictionary"));
  CHECK(contains(header_error("{'descr': '<i2', 'fortran_order': 0, 'shape': (2,)}"),
                 "need True or False"));
  CHECK(contains(header_error("{'descr: 1}"), "need a closing quote"));
  CHECK(contains(header_error("{descr: 1}"), "need a text in quotes"));
  CHECK(contains(header_error(""), "need '{'"));
}

TEST_CASE("a npy file cut in its preamble or of another version is refused") {
  const std::string whole = bytes_of(fixture("c_f8.npy"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK(!parse_error(whole.substr(0, size)).empty());
  }
  CHECK(contains(parse_error(whole.substr(0, 100)), "header: got 100 bytes in the file, need 128"));
  std::string other = whole;
  other[6] = 4;
  CHECK(contains(parse_error(other), "version: got 4.0, need 1.0, 2.0 or 3.0"));
  other[6] = 3;  // its length has four bytes
  CHECK(contains(parse_error(other), "header: got"));
  CHECK(contains(parse_error("PK\x03\x04"), "is not a .npy file"));
}

TEST_CASE("a npy file of version 3 is read") {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n";
  std::string bytes("\x93NUMPY\x03\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += std::string(3, '\0') + header + std::string("\x00\x00\x20\x40", 4);
  CHECK(values(parsed(bytes)) == std::vector<double>{2.5});
}

TEST_CASE("npy booleans of any byte are read as 0 or 1, with a note") {
  const std::string header = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }";
  std::vector<std::string> notes;
  const AnyTensor mask = read_npy(
      InputFile::in_memory(npy_bytes(header, std::string("\x00\x01\xFF", 3)), "x.npy"), notes);
  CHECK(values(mask) == std::vector<double>{0, 1, 1});
  REQUIRE(notes.size() == 1);
  CHECK(contains(notes[0], "booleans other than 0 and 1"));
}

TEST_CASE("Fortran order is undone for every rank") {
  const auto stored = [](const std::string& shape, int count) {
    std::string data;
    for (int i = 0; i < count; ++i) data += static_cast<char>(i);
    return values(
        parsed(npy_bytes("{'descr':'|u1','fortran_order':True,'shape':" + shape + "}", data)));
  };
  CHECK(stored("()", 1) == std::vector<double>{0});
  CHECK(stored("(3,)", 3) == std::vector<double>{0, 1, 2});
  CHECK(stored("(2,2,2)", 8) == std::vector<double>{0, 4, 2, 6, 1, 5, 3, 7});
  // numpy.arange(12).reshape((1,3,2,2), order="F").ravel()
  CHECK(stored("(1,3,2,2)", 12) == std::vector<double>{0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11});
}

TEST_CASE("big-endian elements are swapped whatever their size") {
  const auto first = [](const std::string& type, const std::string& data) {
    return parsed(npy_bytes("{'descr':'>" + type + "','fortran_order':False,'shape':(1,)}", data))
        .at(0);
  };
  CHECK(first("u1", "\x07") == 7);
  CHECK(first("i2", "\xFF\xFE") == -2);
  CHECK(first("u4", std::string("\x00\x01\x00\x02", 4)) == 65538);
  CHECK(first("i8", std::string("\x00\x00\x00\x00\x00\x00\x01\x00", 8)) == 256);
  CHECK(first("f2", std::string("\x3C\x00", 2)) == 1);
}

TEST_CASE("every type and rank is written to npy and read back bit by bit") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.npy");
  for (const DType dtype : kDTypes) {
    for (const Shape& shape :
         {Shape{}, Shape{12}, Shape{0, 3}, Shape{5, 3}, Shape{2, 1, 7}, Shape{2, 3, 2, 2}}) {
      INFO(dtype_name(dtype) << shape.str());
      const AnyTensor tensor = awkward(dtype, shape);
      write_tensor(path, tensor, "save");
      const AnyTensor expected =
          dtype == DType::bfloat16 ? tensor.cast(DType::float32) : tensor.cast(dtype);
      CHECK(identical(read(path), expected));
      CHECK(notes_of(path).empty());
    }
  }
}

TEST_CASE("a written npy file is byte for byte that of numpy.save") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.npy");
  write_tensor(path, Tensor<double>({2, 3}, {1, 2, 3, 4, 5, 6}), "save");
  CHECK(bytes_of(path) == bytes_of(fixture("c_f8.npy")));
  write_tensor(path, Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}), "save");
  CHECK(bytes_of(path) == bytes_of(fixture("le_f4.npy")));
  write_tensor(path, read(fixture("bool.npy")), "save");
  CHECK(bytes_of(path) == bytes_of(fixture("bool.npy")));
  write_tensor(path, read(fixture("zero_d.npy")), "save");
  CHECK(bytes_of(path) == bytes_of(fixture("zero_d.npy")));
  CHECK(npy_preamble(DType::int8, Shape{3}) ==
        npy_bytes("{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }" +
                      std::string(60, ' ').append("\n"),
                  ""));
}

}  // namespace
}  // namespace attnlab
