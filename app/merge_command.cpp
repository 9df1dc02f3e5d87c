#include "merge_command.h"

#include <fmt/format.h>

#include <set>

#include "attnlab/io/atomic_file.h"
#include "attnlab/io/json.h"
#include "batch.h"
#include "options/read_text.h"

namespace attnlab {
namespace {

struct MergeOptions {
  std::vector<FilePath> parts;
  RunOverrides overrides;

  static constexpr auto fields() {
    using O = MergeOptions;
    return std::tuple(
        field("parts", &O::parts, "the JSON files of --shard 1/N to N/N, in any order",
              {.unit = "FILE...", .positional = true}),
        group("", &O::overrides));
  }
};

// The result of one part.
struct PartFile {
  std::string path;
  Json json;
};

const Json& member(const PartFile& file, const Json& object, const char* name, Json::value_t type) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || found->type() != type) {
    throw InputError(file.path, name, "",
                     "is not there: need the JSON result of an experiment run with --shard I/N");
  }
  return *found;
}

PartFile read_part(const std::string& path) {
  PartFile file{path, parse_json(read_file(path, "parts"), path)};
  member(file, file.json, "command", Json::value_t::string);
  member(file, file.json, "options", Json::value_t::object);
  const Json& version = member(file, file.json, "version", Json::value_t::string);
  if (version != ATTNLAB_VERSION) {
    throw InputError(path, "version", version.get<std::string>(),
                     "need parts of this version, " ATTNLAB_VERSION);
  }
  const Json& result = member(file, file.json, "result", Json::value_t::object);
  member(file, result, "shard", Json::value_t::string);
  member(file, result, "parts", Json::value_t::array);
  const auto interrupted = result.find("interrupted");
  if (interrupted != result.end() && *interrupted == true) {
    throw InputError(path, "interrupted", "true", "need a part that ran to its end");
  }
  return file;
}

// Throws InputError unless the files are 1/N to N/N of one run.
void check_one_run(const std::vector<PartFile>& files) {
  std::set<std::string> seen;
  std::string all;
  for (const PartFile& file : files) {
    for (const char* name : {"command", "options"}) {
      if (file.json[name] != files[0].json[name]) {
        throw InputError(file.path, name, "", "need the same as in " + files[0].path);
      }
    }
    const auto shard = file.json["result"]["shard"].get<std::string>();
    const std::string count = shard.substr(std::min(shard.find('/'), shard.size()));
    if (all.empty()) all = count;
    if (count != all) {
      throw InputError(file.path, "shard", shard, "need parts of one number, N in I/N");
    }
    if (!seen.insert(shard).second) throw InputError(file.path, "shard", shard, "is there twice");
  }
  // N parts are there when no number from 1 to N is missing, and no file is left over.
  for (std::size_t i = 1; i <= files.size(); ++i) {
    if (!seen.contains(std::to_string(i) + all)) {
      throw InputError(kCommandLine, "parts", std::to_string(i) + all,
                       "is missing: need every part");
    }
  }
  if (all != "/" + std::to_string(files.size())) {
    throw InputError(kCommandLine, "parts", std::to_string(files.size() + 1) + all,
                     "is missing: need every part");
  }
}

Index whole_number(const PartFile& file, const Json& part, const char* name) {
  const auto found = part.find(name);
  if (found == part.end() || !found->is_number_integer()) {
    throw InputError(file.path, name, "", "need a whole number in each of parts");
  }
  return found->get<Index>();
}

StatePart state_part(const PartFile& file, const Json& part) {
  if (!part.is_object()) throw InputError(file.path, "parts", "", "need a list of objects");
  StatePart state{whole_number(file, part, "point"),
                  whole_number(file, part, "first_block"),
                  whole_number(file, part, "level"),
                  {}};
  const Json& values = member(file, part, "state", Json::value_t::array);
  state.state.reserve(values.size());
  for (const Json& value : values) {
    if (value.is_array()) throw InputError(file.path, "state", "", "need a list of numbers");
    if (value.is_number()) {
      state.state.push_back(value.get<double>());
    } else {
      state.state.push_back(tensor_from_json(value, file.path, "state").at(0));
    }
  }
  return state;
}

int merge(const Invocation& invocation) {
  MergeOptions own;
  OptionSet set(options_of(own));
  std::optional<FlagValues> given = flags_or_help(invocation, set);
  if (!given) return 0;
  FlagValues& flags = *given;
  set.check_ranges();
  invocation.origins = set.origins();
  if (own.parts.empty()) {
    throw InputError(kCommandLine, "", "", "need the JSON files of --shard 1/N to N/N");
  }
  flags.erase("parts");

  std::vector<PartFile> files;
  for (const FilePath& path : own.parts) files.push_back(read_part(path.path));
  check_one_run(files);
  std::vector<StatePart> parts;
  for (const PartFile& file : files) {
    for (const Json& part : file.json["result"]["parts"]) parts.push_back(state_part(file, part));
  }
  const std::string& path = files[0].path;
  const auto name = files[0].json["command"].get<std::string>();
  const Command& command = find_command(invocation.commands, name, path, "command");
  if (!command.job) throw InputError(path, "command", name, "has no parts to merge");

  Batch batch;
  batch.push_back(std::make_unique<Run>(command));
  batch[0]->options().apply(read_config(path));
  for (const PartFile& file : files) {
    const Json& run = member(file, file.json["result"], "run", Json::value_t::string);
    if (run != batch[0]->run_identity()) {
      throw InputError(file.path, "options", "", "are not those that its parts were measured with");
    }
  }
  batch[0]->options().apply(flags);
  batch[0]->set_parts(std::move(parts));
  return run_batch(batch, invocation.origins);
}

}  // namespace

Command merge_command() {
  return {"merge", "the parts of a sharded experiment, joined into what one run gives",
          "  attnlab variance --shard 1/2 --output a.json\n"
          "  attnlab variance --shard 2/2 --output b.json\n"
          "  attnlab merge a.json b.json",
          nullptr, merge};
}

}  // namespace attnlab
