#include "command.h"

#include <fmt/format.h>

#include <algorithm>

#include "batch.h"
#include "options/help.h"
#include "options/read_text.h"
#include "options/wrapped.h"
#include "terminal.h"

namespace attnlab {
namespace {

// What every computing command takes besides its own options.
struct GeneralOptions {
  FilePath config;
  bool help = false;

  static constexpr auto fields() {
    using O = GeneralOptions;
    return std::tuple(field("config", &O::config,
                            "options from a JSON file, or a result to run again; - is "
                            "standard input; flags go before it"),
                      field("help", &O::help, "print this and exit"));
  }
};

std::vector<OptionRef> general_options(GeneralOptions& general) {
  std::vector<OptionRef> options = options_of(general);
  for (OptionRef& option : options) option.heading = "General";
  return options;
}

std::string overview(std::span<const Command> commands, int width) {
  std::string text =
      "Usage: attnlab COMMAND [options]\n"
      "       attnlab COMMAND --help\n"
      "       attnlab --help | --version\n\n" +
      wrapped(
          "A microscope for the attention mechanism of the Transformer: runs it on what it is "
          "given and shows every matrix on the way.",
          width, 0) +
      "\n\nCommands:\n";
  for (const Command& command : commands) {
    text += fmt::format("  {:<12}{}\n", command.name, wrapped(command.summary, width, 14));
  }
  return text;
}

void take_config(OptionSet& options, const Command& command, const std::string& path) {
  const Config config = read_config(path);
  if (!config.command.empty() && config.command != command.name) {
    throw InputError(config.place.source, "command", config.command,
                     fmt::format("need {}, the command it was given to", command.name));
  }
  options.apply(config);
}

int run_job_command(const Invocation& invocation) {
  const Command& command = invocation.command;
  GeneralOptions general;
  OptionSet general_set(general_options(general));
  const auto job = command.job();
  OutputOptions output;
  std::vector<OptionRef> accepted = run_options(*job, output);
  for (const OptionRef& option : general_set.options()) accepted.push_back(option);
  if (asks_for_help(invocation.arguments)) {
    write_stdout(help_text(command.name, command.summary, command.examples, accepted,
                           job->columns(), terminal_width()));
    return 0;
  }
  const FlagValues flags = parse_flags(accepted, invocation.arguments);
  general_set.apply(flags);
  invocation.origins = general_set.origins();

  Batch batch;
  batch.push_back(std::make_unique<Run>(command, "", general.config.path == "-"));
  OptionSet& options = batch[0]->options();
  if (!general.config.empty()) take_config(options, command, general.config.path);
  options.apply(flags);
  return run_batch(batch, invocation.origins);
}

}  // namespace

std::optional<FlagValues> flags_or_help(const Invocation& invocation, OptionSet& options) {
  if (asks_for_help(invocation.arguments)) {
    const Command& self = invocation.command;
    write_stdout(
        help_text(self.name, self.summary, self.examples, options.options(), {}, terminal_width()));
    return std::nullopt;
  }
  FlagValues flags = parse_flags(options.options(), invocation.arguments);
  options.apply(flags);
  return flags;
}

const Command& find_command(std::span<const Command> commands, std::string_view name,
                            std::string_view source, std::string_view field) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == name) return command;
    names.emplace_back(command.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw InputError(source, field, name,
                   nearest.empty() ? "unknown command, attnlab --help lists them"
                                   : "unknown command, did you mean " + nearest + "?");
}

int run_command_line(std::span<const Command> commands, std::span<const std::string> arguments,
                     Origins& origins) {
  if (arguments.empty()) {
    throw InputError(kCommandLine, "", "", "need a command, attnlab --help lists them");
  }
  const std::string& first = arguments[0];
  if ((first == "--help" || first == "--version") && arguments.size() > 1) {
    throw InputError(kCommandLine, first, arguments[1],
                     "stands alone; attnlab COMMAND --help is the help of a command");
  }
  if (first == "--help") {
    write_stdout(overview(commands, terminal_width()));
    return 0;
  }
  if (first == "--version") {
    write_stdout("attnlab " ATTNLAB_VERSION "\n");
    return 0;
  }
  const Command& command = find_command(commands, first);
  const Invocation invocation{command, commands, arguments.subspan(1), origins};
  return command.direct != nullptr ? command.direct(invocation) : run_job_command(invocation);
}

}  // namespace attnlab
