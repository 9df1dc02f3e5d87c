#include "options/schema.h"

#include <fmt/format.h>

#include <limits>

#include "options/echo.h"
#include "options/overloaded.h"

namespace attnlab {
namespace {

// Keys whose values are the names of this command's matrices.
constexpr std::string_view kShow = "show";
constexpr std::string_view kSave = "save";

template <class T>
void add_range(Json& schema, const OptionRange& range) {
  const auto* bounds = std::get_if<Range<T>>(&range);
  if (bounds == nullptr) return;
  if (bounds->low) schema[bounds->low_open ? "exclusiveMinimum" : "minimum"] = *bounds->low;
  if (bounds->high) schema[bounds->high_open ? "exclusiveMaximum" : "maximum"] = *bounds->high;
}

template <class T>
Json integer(const OptionRef& option) {
  Json schema = {{"type", "integer"},
                 {"minimum", std::numeric_limits<T>::min()},
                 {"maximum", std::numeric_limits<T>::max()}};
  if (const auto* range = std::get_if<Range<T>>(&option.range)) {
    if (range->low) schema.erase("minimum");
    if (range->high) schema.erase("maximum");
  }
  add_range<T>(schema, option.range);
  return schema;
}

Json non_finite() { return {{"enum", {"NaN", "Infinity", "-Infinity"}}}; }

Json number(const OptionRef& option) {
  Json schema = {{"type", "number"}};
  add_range<double>(schema, option.range);
  if (!option.non_finite) return schema;
  return {{"anyOf", Json::array({schema, non_finite()})}};
}

Json names(std::span<const std::string_view> list) {
  Json schema = {{"enum", Json::array()}};
  for (const std::string_view name : list) schema["enum"].push_back(name);
  return schema;
}

Json word_or_number(const OptionRef& option) {
  return {{"anyOf", Json::array({names(option.words), number(option)})}};
}

Json path() { return {{"type", "string"}, {"minLength", 1}}; }

Json or_null(const Json& schema) { return {{"anyOf", Json::array({schema, {{"type", "null"}}})}}; }

Json list_of(Json item) { return {{"type", "array"}, {"items", std::move(item)}}; }

Json tensor_source() {
  return {{"anyOf", Json::array({path(), {{"$ref", "#/$defs/array"}}, {{"type", "null"}}})}};
}

// Arrays of `element` nested at most as deep as a tensor has axes.
Json arrays_of(const Json& element) {
  Json level = element;
  for (int depth = 0; depth < Shape::kMaxRank; ++depth) {
    Json array = list_of(level);
    array["minItems"] = 1;
    if (depth + 1 == Shape::kMaxRank) return array;
    level = {{"anyOf", Json::array({element, array})}};
  }
  return level;
}

// What may stand in a tensor's place: a number, or nested arrays of numbers or of booleans.
Json inline_tensor() {
  const Json number = {{"anyOf", Json::array({{{"type", "number"}}, non_finite()})}};
  return {
      {"anyOf",
       Json::array({{{"type", "number"}}, arrays_of(number), arrays_of({{"type", "boolean"}})})}};
}

Json named_files() {
  Json paths = list_of(path());
  return {{"type", "object"}, {"additionalProperties", {{"anyOf", Json::array({path(), paths})}}}};
}

Json type_of(const OptionRef& option) {
  return std::visit(Overloaded{
                        [](bool*) {
                          return Json{{"type", "boolean"}};
                        },
                        [](std::optional<bool>*) {
                          return or_null({{"type", "boolean"}});
                        },
                        [&](Index*) { return integer<Index>(option); },
                        [&](std::optional<Index>*) { return or_null(integer<Index>(option)); },
                        [&](std::vector<Index>*) { return list_of(integer<Index>(option)); },
                        [&](std::uint64_t*) { return integer<std::uint64_t>(option); },
                        [&](double*) { return number(option); },
                        [&](std::optional<double>*) { return or_null(number(option)); },
                        [&](std::vector<double>*) { return list_of(number(option)); },
                        [](std::string*) {
                          return Json{{"type", "string"}};
                        },
                        [](std::vector<std::string>*) {
                          return list_of({{"type", "string"}});
                        },
                        [&](WordOrNumber*) { return word_or_number(option); },
                        [](FilePath*) { return or_null(path()); },
                        [](std::vector<FilePath>*) { return list_of(path()); },
                        [](TensorSource*) { return tensor_source(); },
                        [](NamedFiles*) { return named_files(); },
                        [](const ChoiceRef& choice) { return names(choice.names); },
                        [](const ChoiceListRef& choice) { return list_of(names(choice.names)); },
                    },
                    option.value);
}

void restrict_to_matrices(Json& property, std::string_view key,
                          const std::vector<ResultRef>& results) {
  std::vector<std::string_view> matrices;
  for (const ResultRef& result : results) {
    if (result.is_matrix()) matrices.push_back(result.name);
  }
  if (key == kSave) property["propertyNames"] = names(matrices);
  if (key != kShow) return;
  matrices.insert(matrices.end(), {"default", "all", "none"});
  property["items"] = names(matrices);
}

Json property_of(const OptionRef& option, const std::vector<ResultRef>& results) {
  Json property = type_of(option);
  restrict_to_matrices(property, option.name, results);
  const bool named = option.unit.empty();
  property["description"] =
      named ? std::string(option.help) : fmt::format("{} [{}]", option.help, option.unit);
  property["default"] = option_to_json(option);
  return property;
}

}  // namespace

Json schema_of(std::string_view command, const std::vector<OptionRef>& options,
               const std::vector<ResultRef>& results) {
  Json properties = {{"$schema", {{"type", "string"}}}, {"command", {{"const", command}}}};
  bool tensors = false;
  for (const OptionRef& option : options) {
    properties[std::string(option.name)] = property_of(option, results);
    tensors = tensors || std::holds_alternative<TensorSource*>(option.value);
  }
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", fmt::format("attnlab {}", command)},
                 {"type", "object"},
                 {"properties", std::move(properties)},
                 {"additionalProperties", false}};
  if (tensors) schema["$defs"] = {{"array", inline_tensor()}};
  return schema;
}

}  // namespace attnlab
