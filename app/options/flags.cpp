#include "options/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "attnlab/core/error.h"
#include "options/help.h"
#include "options/numbers.h"
#include "options/overloaded.h"
#include "options/read_text.h"

namespace attnlab {
namespace {

using Strings = std::vector<std::string>;

bool is_switch(const OptionRef& option) {
  return std::holds_alternative<bool*>(option.value) ||
         std::holds_alternative<std::optional<bool>*>(option.value);
}

bool repeats(const OptionRef& option) {
  return std::holds_alternative<NamedFiles*>(option.value) ||
         std::holds_alternative<std::vector<FilePath>*>(option.value);
}

bool takes_all_that_is_left(const OptionRef& option) {
  return repeats(option) || option.list_text ||
         std::visit(Overloaded{[](std::vector<Index>*) { return true; },
                               [](std::vector<double>*) { return true; },
                               [](std::vector<std::string>*) { return true; },
                               [](const ChoiceListRef&) { return true; },
                               [](const auto&) { return false; }},
                    option.value);
}

const OptionRef* find_flag(const std::vector<OptionRef>& options, std::string_view flag) {
  for (const OptionRef& option : options) {
    if (option.flag() == flag) return &option;
  }
  return nullptr;
}

bool is_value(const std::string& argument) { return !argument.starts_with("--"); }

bool is_positional(const std::string& argument) {
  return !argument.starts_with('-') || argument == "-" || looks_numeric(argument);
}

// Arguments as CLI11 reads them alike in all its versions: every flag in one piece with its value,
// positionals apart. A second "=" keeps what CLI11 would change from it: empty values, and those
// in brackets, which it splits.
struct SortedArguments {
  Strings flags;
  Strings positionals;
};

std::string guarded(const std::string& flag, const std::string& value) {
  return flag + "==" + value;
}

SortedArguments sort_arguments(const std::vector<OptionRef>& options,
                               std::span<const std::string> arguments) {
  SortedArguments sorted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      const auto rest = arguments.subspan(i + 1);
      sorted.positionals.insert(sorted.positionals.end(), rest.begin(), rest.end());
      break;
    }
    if (is_positional(argument)) {
      sorted.positionals.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const OptionRef* option = find_flag(options, flag);
    if (equals != std::string::npos) {
      sorted.flags.push_back(guarded(flag, argument.substr(equals + 1)));
    } else if (option == nullptr || is_switch(*option)) {
      sorted.flags.push_back(flag);
    } else if (i + 1 < arguments.size() && is_value(arguments[i + 1])) {
      sorted.flags.push_back(guarded(flag, arguments[++i]));
    } else {
      throw InputError(kCommandLine, flag, "", "needs a value: " + metavar(*option));
    }
  }
  return sorted;
}

[[noreturn]] void refuse_unknown(const std::vector<OptionRef>& options,
                                 const std::string& argument) {
  const std::string flag = argument.substr(0, argument.find('='));
  Strings names = {"help"};
  for (const OptionRef& option : options) names.push_back(option.flag().substr(2));
  const std::string nearest =
      nearest_name(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())), names);
  throw InputError(kCommandLine, flag, "",
                   "unknown option" + (nearest.empty() ? "" : ", did you mean --" + nearest + "?"));
}

FlagValues parse_sorted(const std::vector<OptionRef>& options, Strings flags) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> parsers;
  for (const OptionRef& option : options) {
    parsers.push_back(is_switch(option) ? app.add_flag(option.flag())
                                        : app.add_option(option.flag()));
    parsers.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  std::reverse(flags.begin(), flags.end());  // CLI11 takes them from the back
  app.parse(flags);
  for (const std::string& unknown : app.remaining()) refuse_unknown(options, unknown);

  FlagValues values;
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (const std::string& text : parsers[i]->results()) {
      values[std::string(options[i].name)].push_back(text.starts_with('=') ? text.substr(1) : text);
    }
  }
  return values;
}

void assign_positionals(const std::vector<OptionRef>& options, const Strings& positionals,
                        FlagValues& values) {
  auto next = positionals.begin();
  for (const OptionRef& option : options) {
    if (!option.positional || next == positionals.end()) continue;
    Strings& texts = values[std::string(option.name)];
    if (!texts.empty()) continue;  // given by its flag
    const auto last = takes_all_that_is_left(option) ? positionals.end() : next + 1;
    texts.assign(next, last);
    next = last;
  }
  if (next != positionals.end()) {
    throw InputError(kCommandLine, "", *next, "unexpected argument");
  }
}

}  // namespace

bool asks_for_help(std::span<const std::string> arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--help") != end;
}

FlagValues parse_flags(const std::vector<OptionRef>& options,
                       std::span<const std::string> arguments) {
  SortedArguments sorted = sort_arguments(options, arguments);
  FlagValues values = parse_sorted(options, std::move(sorted.flags));
  for (const OptionRef& option : options) {
    const auto given = values.find(option.name);
    if (given != values.end() && given->second.size() > 1 && !repeats(option)) {
      const std::string second = is_switch(option) ? "" : given->second[1];
      throw InputError(kCommandLine, option.flag(), second, "given twice");
    }
  }
  assign_positionals(options, sorted.positionals, values);
  return values;
}

}  // namespace attnlab
