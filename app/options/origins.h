#pragma once

#include <map>
#include <string>
#include <string_view>

#include "attnlab/core/describe.h"
#include "attnlab/core/error.h"

namespace attnlab {

// Where the value of each option came from: the command line, a config, or nowhere (its default).
class Origins {
 public:
  // The option is there, with its default.
  void add(const OptionRef& option);
  // Its value comes from `source`.
  void set(std::string_view option, std::string_view source);

  // The other options have their defaults because `config` does not name them.
  void set_config(std::string_view config) { config_ = config; }

  // An error about an option as its user gave it: "command line: --samples" or
  // "variance.json: samples", and for a default without a config "--samples".
  InputError error(std::string_view option, std::string_view value, std::string_view rule) const;

  // The same for an error that names an option and no source, as the library throws them, since it
  // cannot know; others as they are.
  InputError located(const InputError& error) const;

 private:
  struct Origin {
    std::string flag;
    std::string source;
  };
  std::map<std::string, Origin, std::less<>> origins_;
  std::string config_;
};

}  // namespace attnlab
