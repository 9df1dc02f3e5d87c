#include "batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "attnlab/io/atomic_file.h"
#include "terminal.h"

namespace attnlab {
namespace {

// Runs by where their results go, "" for standard output.
using Destinations = std::map<std::string, std::vector<const Run*>>;

constexpr std::string_view kOneTarget = "need a file that nothing else is written to";

std::string normal_path(const std::string& path) {
  std::error_code error;
  // Absolute first: a relative path to a file that is not there yet would stay as it is.
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? path : canonical.string();
}

std::string destination_of(const Run& run) {
  return to_stdout(run.output()) ? "" : normal_path(run.output().output.path);
}

Destinations destinations_of(const Batch& batch) {
  Destinations destinations;
  for (const auto& run : batch) destinations[destination_of(*run)].push_back(run.get());
  return destinations;
}

std::string_view format_name(Format format) {
  return kChoiceNames<Format>[static_cast<std::size_t>(format)];
}

void check_joinable(const std::vector<const Run*>& runs) {
  for (const Run* run : runs) {
    if (run->format() != runs[0]->format()) {
      throw run->origins().error(
          "format", format_name(run->format()),
          fmt::format("need one format for all results that go to the same place, {} comes first",
                      format_name(runs[0]->format())));
    }
    if (run->format() == Format::csv && run->command().name != runs[0]->command().name) {
      throw run->origins().error("format", "csv",
                                 "need results of one command, which have the same columns");
    }
  }
}

void check_saves(const Batch& batch, const Destinations& destinations) {
  std::set<std::string> targets;
  for (const auto& run : batch) {
    for (const OptionRef& option : run->options().options()) {
      if (option.name != "save_params") continue;
      const std::string& file = std::get<FilePath*>(option.value)->path;
      if (!file.empty() &&
          (!targets.insert(normal_path(file)).second || destinations.contains(normal_path(file)))) {
        throw run->origins().error(option.name, file, kOneTarget);
      }
    }
    for (const NamedFile& file : run->output().save) {
      const std::string path = normal_path(file.path);
      if (!targets.insert(path).second || destinations.contains(path)) {
        throw run->origins().error("save", file.path, kOneTarget);
      }
    }
  }
}

void check_stdin(const Batch& batch) {
  int readers = 0;
  for (const auto& run : batch) readers += run->stdin_readers();
  if (readers > 1) {
    throw InputError("standard input", "", "", "can be read once, for one option or config");
  }
}

std::string without_first_line(const std::string& text) {
  return text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string joined_tables(const std::vector<const Run*>& runs,
                          const std::vector<std::string>& texts) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) out += "\n";
    out += fmt::format("# {} ({})\n", printable(runs[i]->title()), runs[i]->command().name);
    out += texts[i];
  }
  return out;
}

std::string joined_json(const std::vector<std::string>& texts) {
  std::string out = "[\n";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string_view text = texts[i];
    while (text.ends_with('\n')) text.remove_suffix(1);
    out += text;
    out += i + 1 < texts.size() ? ",\n" : "\n";
  }
  return out + "]\n";
}

std::string joined_csv(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) {
    const bool again = !out.empty() && first_line(text) == first_line(texts[0]);
    out += again ? without_first_line(text) : text;
  }
  return out;
}

std::string joined(const std::vector<const Run*>& runs, const std::vector<std::string>& texts) {
  if (runs.size() == 1) return texts[0];
  switch (runs[0]->format()) {
    case Format::json:
      return joined_json(texts);
    case Format::csv:
      return joined_csv(texts);
    case Format::jsonl:
      return fmt::format("{}", fmt::join(texts, ""));
    case Format::automatic:
    case Format::table:
      break;
  }
  return joined_tables(runs, texts);
}

}  // namespace

int run_batch(const Batch& batch, Origins& origins) {
  for (const auto& run : batch) {
    origins = run->origins();
    run->prepare();
  }
  const Destinations destinations = destinations_of(batch);
  for (const auto& [path, runs] : destinations) check_joinable(runs);
  check_saves(batch, destinations);
  check_stdin(batch);

  std::map<const Run*, std::string> texts;
  int exit_code = 0;
  for (const auto& run : batch) {
    origins = run->origins();
    run->compute();
    texts[run.get()] = run->render();
    exit_code = std::max(exit_code, run->exit_code());
  }

  for (const auto& run : batch) {
    origins = run->origins();
    run->write_saves();
  }
  for (const auto& [path, runs] : destinations) {
    std::vector<std::string> parts;
    for (const Run* run : runs) parts.push_back(std::move(texts[run]));
    const std::string text = joined(runs, parts);
    origins = runs[0]->origins();
    if (path.empty()) {
      write_stdout(text);
    } else {
      write_file_atomically(runs[0]->output().output.path, text, "output");
    }
  }
  for (const auto& run : batch) std::fputs(run->notes_text().c_str(), stderr);
  return exit_code;
}

}  // namespace attnlab
