#include "batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "attnlab/io/atomic_file.h"
#include "interrupt.h"
#include "row_sink.h"
#include "terminal.h"

namespace attnlab {
namespace {

// Runs by where their results go, "" for standard output.
using Destinations = std::map<std::string, std::vector<const Run*>>;

constexpr std::string_view kOneTarget = "need a file that nothing else is written to";

std::string normal_path(const std::string& path) {
  std::error_code error;
  // Absolute first: a relative path to a file that is not there yet would stay as it is.
  std::filesystem::path canonical =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  // A folder may have been named with a slash at its end.
  if (canonical.filename().empty()) canonical = canonical.parent_path();
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

// A file in a folder that is put in its place whole would be lost with what stood there.
void check_folder(const Run& run, const std::string& folder, const std::string& path) {
  const std::string inside = normal_path(folder) + "/";
  if (path.starts_with(inside)) {
    throw run.origins().error("save_case", folder,
                              "need a folder that nothing else is written into");
  }
}

void check_saves(const Batch& batch, const Destinations& destinations) {
  std::set<std::string> targets;
  std::vector<std::pair<const Run*, std::string>> folders;
  const auto add = [&](const Run& run, std::string_view option, const std::string& file) {
    const std::string path = normal_path(file);
    if (!targets.insert(path).second || destinations.contains(path)) {
      throw run.origins().error(option, file, kOneTarget);
    }
  };
  for (const auto& run : batch) {
    for (const OptionRef& option : run->options().options()) {
      if (option.name != "save_params" && option.name != "save_case") continue;
      const std::string& file = std::get<FilePath*>(option.value)->path;
      if (file.empty()) continue;
      add(*run, option.name, file);
      if (option.name == "save_case") folders.emplace_back(run.get(), file);
    }
    for (const NamedFile& file : run->output().save) add(*run, "save", file.path);
  }
  for (const auto& [run, folder] : folders) {
    for (const std::string& target : targets) check_folder(*run, folder, target);
    for (const auto& [path, runs] : destinations) check_folder(*run, folder, path);
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

std::string joined(const std::vector<const Run*>& runs, std::vector<std::string> texts) {
  if (runs.size() == 1) return std::move(texts[0]);
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

// One for each place where rows go as soon as they are known.
std::map<std::string, RowSink> sinks_of(const Destinations& destinations, Origins& origins) {
  std::map<std::string, RowSink> sinks;
  for (const auto& [path, runs] : destinations) {
    if (std::none_of(runs.begin(), runs.end(), [](const Run* run) { return run->streams(); })) {
      continue;
    }
    origins = runs[0]->origins();
    sinks.try_emplace(path, path.empty() ? "" : runs[0]->output().output.path);
  }
  return sinks;
}

// The texts of those runs that came to have one.
void write_joined(const std::string& path, const std::vector<const Run*>& runs,
                  std::map<const Run*, std::string>& texts) {
  std::vector<const Run*> done;
  std::vector<std::string> parts;
  for (const Run* run : runs) {
    const auto text = texts.find(run);
    if (text == texts.end()) continue;
    done.push_back(run);
    parts.push_back(std::move(text->second));
  }
  if (done.empty()) return;
  const std::string text = joined(done, std::move(parts));
  if (path.empty()) {
    write_stdout(text);
  } else {
    write_file_atomically(runs[0]->output().output.path, text, "output");
  }
}

void print_notes(const Batch& batch) {
  for (const auto& run : batch) {
    std::fputs(run->notes_text().c_str(), stderr);
    if (!run->interrupted()) continue;
    const std::vector<OptionRef>& options = run->options().options();
    const bool resumes = std::any_of(options.begin(), options.end(), [](const OptionRef& option) {
      return option.name == "resume";
    });
    fmt::print(stderr, "attnlab: interrupted: the rows that were done are kept{}\n",
               resumes ? "; --resume goes on from those of --format jsonl" : "");
  }
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
  std::map<std::string, RowSink> sinks = sinks_of(destinations, origins);

  // Other commands end at once, as programs do.
  const bool stoppable =
      std::any_of(batch.begin(), batch.end(), [](const auto& run) { return run->is_experiment(); });
  std::optional<InterruptGuard> interrupt;
  if (stoppable) interrupt.emplace();
  const std::atomic<bool> never{false};
  const std::atomic<bool>& cancel = interrupt ? interrupt->requested() : never;
  std::map<const Run*, std::string> texts;
  int exit_code = 0;
  for (const auto& run : batch) {
    origins = run->origins();
    const auto sink = sinks.find(destination_of(*run));
    run->compute(cancel, [&](std::string_view line) { sink->second.write(line); });
    if (sink == sinks.end()) {
      texts[run.get()] = run->render();
    } else if (!run->streams()) {
      sink->second.write(run->render());
    }
    exit_code = std::max(exit_code, run->exit_code());
    if (run->interrupted()) {
      exit_code = interrupt->exit_code();
      break;
    }
  }

  for (const auto& run : batch) {
    origins = run->origins();
    if (texts.contains(run.get())) run->write_saves();
  }
  for (const auto& [path, runs] : destinations) {
    origins = runs[0]->origins();
    if (const auto sink = sinks.find(path); sink != sinks.end()) {
      sink->second.commit();
    } else {
      write_joined(path, runs, texts);
    }
  }
  print_notes(batch);
  return exit_code;
}

}  // namespace attnlab
