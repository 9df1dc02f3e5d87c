#pragma once

#include <string>
#include <vector>

#include "attnlab/io/json.h"
#include "options/read_json.h"

namespace attnlab {

// What a config file asks for, its values not yet read.
struct Config {
  ConfigPlace place;
  std::string command;            // empty when it names none
  Json options = Json::object();  // values by option name
};

// Reads a config, "-" from standard input: an object of options, which may name its "command" and
// a "$schema" for editors. An object with "version" and "options" is the result of a run: its
// options are the config. Throws InputError.
Config read_config(const std::string& path);

// The same, where an array stands for several, one after the other.
std::vector<Config> read_configs(const std::string& path);

}  // namespace attnlab
