#include "run_configs.h"

#include "batch.h"
#include "options/read_text.h"

namespace attnlab {
namespace {

// The configs, and options of theirs that do not change a result: those given here are put over
// all configs.
struct RunConfigsOptions {
  std::vector<FilePath> config;
  Index threads = 0;
  RunOverrides overrides;

  static constexpr auto fields() {
    using O = RunConfigsOptions;
    return std::tuple(
        field("config", &O::config,
              "JSON files that name their command, or results to run again; an array is several; "
              "- is standard input",
              {.unit = "CONFIG...", .positional = true}),
        field("threads", &O::threads, "threads to use, 0 for all cores",
              {.range = between<Index>(0, 1024)}),
        group("", &O::overrides));
  }
};

std::unique_ptr<Run> run_of(const Config& config, bool from_stdin,
                            std::span<const Command> commands) {
  const std::string& source = config.place.source;
  if (config.command.empty()) {
    throw InputError(source, "command", "", "is needed: the config does not say what to run");
  }
  const Command& command = find_command(commands, config.command, source, "command");
  if (!command.job) throw InputError(source, "command", command.name, "cannot stand in a config");
  auto run = std::make_unique<Run>(command, source, from_stdin);
  run->options().apply(config);
  return run;
}

int run_configs(const Invocation& invocation) {
  RunConfigsOptions own;
  OptionSet set(options_of(own));
  std::optional<FlagValues> given = flags_or_help(invocation, set);
  if (!given) return 0;
  FlagValues& flags = *given;
  set.check_ranges();
  invocation.origins = set.origins();
  if (own.config.empty()) throw InputError(kCommandLine, "", "", "need a config to run");
  flags.erase("config");

  Batch batch;
  for (const FilePath& file : own.config) {
    bool from_stdin = file.path == "-";
    for (const Config& config : read_configs(file.path)) {
      batch.push_back(run_of(config, from_stdin, invocation.commands));
      batch.back()->options().apply(flags);
      from_stdin = false;  // the file is read once for all its configs
    }
  }
  return run_batch(batch, invocation.origins);
}

}  // namespace

Command run_configs_command() {
  return {"run", "what config files ask for, one after the other",
          "  attnlab run configs/attend.json\n"
          "  attnlab run configs/*.json --format json --output all.json",
          nullptr, run_configs};
}

}  // namespace attnlab
