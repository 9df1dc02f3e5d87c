#include "attnlab/io/json.h"

#include "catch.h"
#include "files.h"
#include "samples.h"

namespace attnlab {
namespace {

using namespace test;

std::string json_error(const std::string& text) {
  return error_of([&] { parse_json(text, "x.json"); });
}

TEST_CASE("a syntax error in JSON is told with line and column") {
  CHECK(contains(read_error(fixture("comment.json")),
                 "comment.json: line 1, column 2: JSON has no comments"));
  CHECK(contains(read_error(fixture("trunc.json")),
                 "line 1, column 15 (at q[1][1]): the text ends too early"));
  CHECK(
      contains(read_error(fixture("nan.json")), "line 1, column 8 (at q[0][0]): NaN is not JSON"));
  CHECK(
      contains(json_error("[1,\n -Infinity]"), "line 2, column 3 (at [1]): -Infinity is not JSON"));
  CHECK(contains(json_error("[nan]"), "nan is not JSON"));
  CHECK(contains(json_error("[1, 2,]"), "line 1, column 7 (at [2]): JSON has no comma after the"));
  CHECK(contains(json_error("{\"a\": 1,}"), "JSON has no comma after the last value"));
  CHECK(contains(json_error("{'a': 1}"), "line 1, column 2: JSON has double quotes only"));
  CHECK(
      contains(json_error("{\"\u00e9\u00e9\": x}"), "line 1, column 8 (at \u00e9\u00e9): syntax"));
  CHECK(contains(json_error("[1] [2]"), "line 1, column 5"));
  CHECK(contains(json_error("{\"a\" 1}"), "line 1, column 6"));
  CHECK(contains(json_error("01"), "line 1, column 2"));
  for (const char* text : {"[1 2]", "[.5]", "[5.]", "[+1]", "\"\x01\"", "\"\\x\"", "tru", "]"}) {
    INFO(text);
    CHECK(contains(json_error(text), "x.json: line 1, column "));
  }
}

TEST_CASE("JSON that is empty or not UTF-8 is refused") {
  CHECK(contains(json_error(""), "x.json: is empty, need JSON"));
  CHECK(contains(json_error(" \n"), "is empty"));
  CHECK(contains(json_error(std::string("\xFF\xFE[\0", 4)), "is not UTF-8"));
  CHECK(contains(json_error(std::string("[\0]\0", 4)), "is not UTF-8"));
  CHECK(
      contains(json_error(std::string("{\"n\":3}\0{garbage", 16)), "line 1, column 8: a NUL byte"));
  CHECK(contains(json_error("\"\xC3\""), "ill-formed UTF-8"));
  CHECK(contains(json_error("\"\xED\xA0\x80\""), "ill-formed UTF-8"));
}

TEST_CASE("a UTF-8 byte-order mark before JSON is skipped") {
  CHECK(values(read(fixture("bom.json") + ":q")) == std::vector<double>{1, 2});
  CHECK(contains(json_error("\xEF\xBB\xBF[x]"), "line 1, column 2"));
}

TEST_CASE("a key that stands twice is refused by its path") {
  CHECK(contains(read_error(fixture("dup.json")), "dup.json: scale: the key stands twice"));
  CHECK(contains(json_error("{\"a\": [{\"b\": {\"c\": 1, \"d\": 2, \"c\": 1}}]}"),
                 "x.json: a[0].b.c: the key stands twice"));
  CHECK(json_error("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 2}]}").empty());
}

TEST_CASE("nesting deeper than 32 is refused, whatever the depth") {
  for (const std::size_t depth : {33u, 100000u}) {
    CHECK(contains(json_error(std::string(depth, '[') + std::string(depth, ']')),
                   "nested deeper than 32"));
  }
  std::string objects;
  for (int i = 0; i < 40; ++i) objects += "{\"a\":";
  CHECK(contains(json_error(objects), "nested deeper than 32"));
  CHECK(json_error(std::string(32, '[') + std::string(32, ']')).empty());
  CHECK(
      json_error(std::string("[") + std::string(5, '[') + std::string(5, ']') + ",[[]]]").empty());
}

TEST_CASE("many keys take no quadratic time") {
  std::string text = "{\"k0\":0";
  for (int i = 1; i < 100000; ++i) text += std::string(",\"k") + std::to_string(i) + "\":0";
  CHECK(parse_json(text + "}", "x.json").size() == 100000);
}

TEST_CASE("a number outside float64 is refused with its path") {
  CHECK(contains(json_error("[[1, 1e400]]"),
                 "x.json: [0][1]: got 1e400, out of the range of float64"));
  CHECK(contains(json_error("{\"a\": {\"b\": -1e999}}"), "a.b: got -1e999, out of the range"));
  CHECK(parse_json("1e-400", "x.json") == 0.0);
}

TEST_CASE("integers of 64 bits stay exact") {
  CHECK(parse_json(bytes_of(fixture("seed53.json")), "s")["seed"].get<std::uint64_t>() ==
        9007199254740993u);
  CHECK(parse_json(bytes_of(fixture("bigint.json")), "s")["seed"].get<std::uint64_t>() ==
        18446744073709551615u);
  CHECK(parse_json("1000000000000000", "s").is_number_unsigned());
  CHECK(parse_json("-9223372036854775808", "s").get<std::int64_t>() ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(parse_json("-1", "s").is_number_integer());
  CHECK(parse_json("1.0", "s").is_number_float());
  CHECK(parse_json("18446744073709551616", "s").is_number_float());
  for (const char* text :
       {"9007199254740993", "18446744073709551615", "1000000000000000", "-9223372036854775808"}) {
    CHECK(dump_json(parse_json(text, "s")) == text);
  }
}

TEST_CASE("a negative zero keeps its sign") {
  for (const char* text : {"-0", "-0.0", "-0e0"}) {
    const AnyTensor zero = tensor_from_json(parse_json(text, "s"), "s", "");
    CHECK(zero.at(0) == 0);
    CHECK(std::signbit(zero.at(0)));
  }
  CHECK(dump_json(parse_json("[0, -0.0]", "s")) == "[0, -0.0]");
}

TEST_CASE("objects are indented, arrays of numbers on one line, matrices a line a row") {
  const std::string text = R"({
  "name": "a\"b",
  "empty": {},
  "none": [],
  "vector": [1, 2.5, "NaN", null, true],
  "matrix": [
    [1, 2],
    [3, 4]
  ],
  "tensor": [
    [
      [1],
      [2]
    ]
  ],
  "rows": [
    {
      "x": 1
    }
  ]
})";
  CHECK(dump_json(parse_json(text, "s")) == text);
  Json many = Json::array();
  for (int i = 0; i < 100; ++i) many.push_back("NaN");
  CHECK(!contains(dump_json(many), "\n"));
  const Json notes = {std::string(60, 'a'), std::string(60, 'b')};
  CHECK(dump_json(notes) == std::string("[\n  \"") + std::string(60, 'a') + "\",\n  \"" +
                                std::string(60, 'b') + "\"\n]");
}

TEST_CASE("what is written as JSON is always JSON") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(dump_json(Json{{"x", infinity}}) == "{\n  \"x\": \"Infinity\"\n}");
  CHECK(number_to_json(std::nan("")) == "NaN");
  CHECK(number_to_json(-infinity) == "-Infinity");
  CHECK(number_to_json(0.5) == 0.5);
  CHECK(json_error(dump_json(Json("file\xff\n"))).empty());
}

}  // namespace
}  // namespace attnlab
