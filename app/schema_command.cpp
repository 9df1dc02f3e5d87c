#include "schema_command.h"

#include "attnlab/io/json.h"
#include "options/option_set.h"
#include "options/read_text.h"
#include "options/schema.h"
#include "run.h"
#include "terminal.h"

namespace attnlab {
namespace {

struct SchemaOptions {
  std::string command;
  bool help = false;

  static constexpr auto fields() {
    using O = SchemaOptions;
    return std::tuple(field("command", &O::command, "the command whose config to describe",
                            {.unit = "COMMAND", .positional = true}),
                      field("help", &O::help, "print this and exit"));
  }
};

int print_schema(const Invocation& invocation) {
  SchemaOptions schema;
  OptionSet set(options_of(schema));
  if (!flags_or_help(invocation, set)) return 0;
  if (schema.command.empty()) throw InputError(kCommandLine, "", "", "need a command");
  const Command& command = find_command(invocation.commands, schema.command);
  if (!command.job) throw InputError(kCommandLine, "", command.name, "has no config");
  const auto job = command.job();
  OutputOptions output;
  write_stdout(dump_json(schema_of(command.name, run_options(*job, output), job->columns())) +
               "\n");
  return 0;
}

}  // namespace

Command schema_command() {
  return {"schema", "the JSON Schema of a command's config",
          "  attnlab schema attend > attend.schema.json", nullptr, print_schema};
}

}  // namespace attnlab
