#include "options/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "attnlab/core/error.h"
#include "attnlab/io/atomic_file.h"

namespace attnlab {
namespace {

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ConfigPlace place_of(const std::string& path) {
  if (path == "-") return {"standard input", ""};
  return {path, std::filesystem::path(path).parent_path().string()};
}

Json parse_file(const std::string& path) {
  return parse_json(read_file(path, "config"), place_of(path).source);
}

std::string take_command(Json& object, const std::string& source) {
  const auto command = object.find("command");
  if (command == object.end()) return "";
  if (!command->is_string()) throw InputError(source, "command", dump(*command), "need a command");
  std::string name = command->get<std::string>();
  object.erase(command);
  return name;
}

// A result has its options in one place: an option beside them would be passed over.
void check_result_keys(const Json& object, const std::string& source) {
  for (const auto& [key, value] : object.items()) {
    static constexpr std::array<std::string_view, 6> kKeys = {"version", "options", "notes",
                                                              "dtype",   "result",  "$schema"};
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    throw InputError(source, key, dump(value),
                     "is no part of a result; its options stand under \"options\"");
  }
}

Config config_from(Json object, ConfigPlace place) {
  if (!object.is_object()) {
    throw InputError(place.source, "", dump(object), "need an object of options");
  }
  Config config{std::move(place), "", {}};
  config.command = take_command(object, config.place.source);
  if (object.contains("version") && object.contains("options")) {
    check_result_keys(object, config.place.source);
    object = Json(object["options"]);
    if (!object.is_object()) {
      throw InputError(config.place.source, "options", dump(object), "need an object of options");
    }
  }
  object.erase("$schema");
  config.options = std::move(object);
  return config;
}

}  // namespace

Config read_config(const std::string& path) {
  return config_from(parse_file(path), place_of(path));
}

std::vector<Config> read_configs(const std::string& path) {
  Json document = parse_file(path);
  std::vector<Config> configs;
  if (!document.is_array()) {
    configs.push_back(config_from(std::move(document), place_of(path)));
    return configs;
  }
  if (document.empty()) {
    throw InputError(place_of(path).source, "", "[]", "need at least one config");
  }
  for (std::size_t i = 0; i < document.size(); ++i) {
    ConfigPlace place = place_of(path);
    place.source += fmt::format("[{}]", i);
    configs.push_back(config_from(std::move(document[i]), std::move(place)));
  }
  return configs;
}

}  // namespace attnlab
