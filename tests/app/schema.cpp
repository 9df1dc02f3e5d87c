#include "options/schema.h"

#include "app/described.h"
#include "catch.h"
#include "options/echo.h"
#include "options/output_options.h"

namespace attnlab {
namespace {

Json property(const char* name) {
  EveryOption options;
  return schema_of("fruit", options_of(options), {})["properties"][name];
}

Json json(const char* text) { return parse_json(text, "test"); }

TEST_CASE("the schema is closed and names its command") {
  EveryOption options;
  const Json schema = schema_of("fruit", options_of(options), {});
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["type"] == "object");
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["properties"]["command"] == json(R"({"const": "fruit"})"));
  CHECK(schema["properties"].size() == options_of(options).size() + 2);
}

TEST_CASE("every property has its type, range, description and default") {
  CHECK(property("count") == json(R"({"type": "integer", "minimum": 1, "maximum": 17,
                                      "description": "a count [pairs]", "default": 3})"));
  CHECK(property("seed") == json(R"({"type": "integer", "minimum": 0,
      "maximum": 18446744073709551615, "description": "a seed", "default": 0})"));
  CHECK(property("share") == json(R"({"type": "number", "minimum": 0, "exclusiveMaximum": 1,
                                      "description": "a share", "default": 0.5})"));
  CHECK(property("flag")["type"] == "boolean");
  CHECK(property("maybe_share") ==
        json(R"({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}],
                 "description": "a share or nothing", "default": null})"));
  CHECK(property("any_number")["anyOf"] ==
        json(R"([{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}])"));
  CHECK(property("text")["type"] == "string");
  CHECK(property("shares")["items"] == json(R"({"type": "number", "minimum": 0, "maximum": 1})"));
  CHECK(property("scale")["anyOf"] == json(R"([{"enum": ["auto", "none"]}, {"type": "number"}])"));
  CHECK(property("fruit")["enum"] == json(R"(["apple", "pear", "blood-orange"])"));
  CHECK(property("fruits")["items"]["enum"] == json(R"(["apple", "pear", "blood-orange"])"));
  CHECK(property("fruits")["default"] == json(R"(["apple"])"));
  CHECK(property("tensor")["anyOf"] == json(R"([{"type": "string", "minLength": 1},
                                                {"$ref": "#/$defs/array"}, {"type": "null"}])"));
}

TEST_CASE("numbers or booleans, nested four deep, may stand in a tensor's place") {
  EveryOption options;
  const Json array = schema_of("fruit", options_of(options), {})["$defs"]["array"];
  REQUIRE(array["anyOf"].size() == 3);
  CHECK(array["anyOf"][0] == json(R"({"type": "number"})"));
  for (const auto& [index, element] : {std::pair(1, json(R"({"anyOf": [{"type": "number"},
                                       {"enum": ["NaN", "Infinity", "-Infinity"]}]})")),
                                       std::pair(2, json(R"({"type": "boolean"})"))}) {
    Json level = array["anyOf"][static_cast<std::size_t>(index)];
    for (int depth = 0; depth < 4; ++depth) {
      CHECK(level["type"] == "array");
      CHECK(level["minItems"] == 1);
      level = Json(level["items"]);
      if (depth == 3) break;
      CHECK(level["anyOf"][0] == element);
      level = Json(level["anyOf"][1]);
    }
    CHECK(level == element);
  }
}

TEST_CASE("show and save may choose the matrices of the command") {
  struct Result {
    std::optional<AnyTensor> output, weights;
    double scalar = 0;
    static constexpr auto fields() {
      return std::tuple(field("output", &Result::output, ""),
                        field("weights", &Result::weights, ""),
                        field("scalar", &Result::scalar, ""));
    }
  };
  OutputOptions output;
  const Json schema = schema_of("x", options_of(output), columns_of<Result>());
  CHECK(schema["properties"]["show"]["items"]["enum"] ==
        json(R"(["output", "weights", "default", "all", "none"])"));
  CHECK(schema["properties"]["save"]["propertyNames"]["enum"] == json(R"(["output", "weights"])"));
}

}  // namespace
}  // namespace attnlab
