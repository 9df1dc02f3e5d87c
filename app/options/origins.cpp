#include "options/origins.h"

#include "options/read_text.h"

namespace attnlab {

void Origins::add(const OptionRef& option) {
  origins_.insert_or_assign(std::string(option.name), Origin{option.flag(), ""});
}

void Origins::set(std::string_view option, std::string_view source) {
  const auto found = origins_.find(option);
  if (found != origins_.end()) found->second.source = source;
}

InputError Origins::error(std::string_view option, std::string_view value,
                          std::string_view rule) const {
  const auto found = origins_.find(option);
  if (found == origins_.end()) return InputError("", option, value, rule);
  const std::string& flag = found->second.flag;
  const std::string& source = found->second.source.empty() ? config_ : found->second.source;
  const bool in_config = !source.empty() && source != kCommandLine;
  return InputError(source, in_config ? option : flag, value, rule);
}

InputError Origins::located(const InputError& error) const {
  if (!error.source().empty() || origins_.find(error.field()) == origins_.end()) return error;
  return this->error(error.field(), error.value(), error.rule());
}

}  // namespace attnlab
