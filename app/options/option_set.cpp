#include "options/option_set.h"

#include "options/read_json.h"
#include "options/read_text.h"
#include "options/rules.h"

namespace attnlab {
namespace {

[[noreturn]] void refuse_key(const std::vector<OptionRef>& options, const std::string& key,
                             const std::string& source) {
  std::vector<std::string> names = {"command"};
  for (const OptionRef& option : options) names.emplace_back(option.name);
  const std::string nearest = nearest_name(key, names);
  throw InputError(source, key, "",
                   "unknown option" + (nearest.empty() ? "" : ", did you mean " + nearest + "?"));
}

}  // namespace

OptionSet::OptionSet(std::vector<OptionRef> options) : options_(std::move(options)) {
  for (const OptionRef& option : options_) origins_.add(option);
}

void OptionSet::apply(const Config& config) {
  origins_.set_config(config.place.source);
  for (const auto& [key, value] : config.options.items()) {
    const OptionRef* option = find(key);
    if (option == nullptr) refuse_key(options_, key, config.place.source);
    read_json(*option, value, config.place);
    origins_.set(key, config.place.source);
  }
}

void OptionSet::apply(const FlagValues& flags) {
  for (const auto& [name, texts] : flags) {
    const OptionRef* option = find(name);
    if (option == nullptr) continue;
    read_text(*option, texts);
    origins_.set(name, kCommandLine);
  }
}

void OptionSet::check_ranges() const {
  for (const OptionRef& option : options_) {
    if (const auto violation = range_violation(option)) {
      throw origins_.error(option.name, violation->value, violation->rule);
    }
  }
}

const OptionRef* OptionSet::find(std::string_view name) const {
  for (const OptionRef& option : options_) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

}  // namespace attnlab
