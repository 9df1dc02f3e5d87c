#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attnlab/core/watch.h"
#include "command.h"
#include "options/option_set.h"
#include "options/output_options.h"

namespace attnlab {

// One run of a command from its options to its text. The steps are taken in order: options are
// applied, prepare() checks all that can be checked before computing, compute() makes the library
// call, render() gives the text.
class Run {
 public:
  // `title` names the run where several are printed; `reads_stdin` says that its config came from
  // there.
  explicit Run(const Command& command, std::string title = {}, bool reads_stdin = false);
  // The options refer to what stands beside them.
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  Run(Run&&) = delete;
  Run& operator=(Run&&) = delete;
  ~Run() = default;

  OptionSet& options() { return options_; }
  const Origins& origins() const { return options_.origins(); }
  const Command& command() const { return command_; }
  const std::string& title() const { return title_; }
  const OutputOptions& output() const { return output_; }
  // As --format says, or for auto the extension of --output.
  Format format() const { return format_; }
  // What it reads standard input for: options and the config.
  int stdin_readers() const;

  // Throws InputError when a number is out of range, a name unknown or a file cannot be written.
  void prepare();
  bool is_experiment() const { return job_->is_experiment(); }
  // Whether rows may be written before the last is known.
  bool streams() const { return job_->is_experiment() && format_ == Format::jsonl; }
  // Measures nothing, but joins what shards have measured.
  void set_parts(std::vector<StatePart> parts) { parts_ = std::move(parts); }
  // Throws InputError, also when a matrix that was asked for does not exist in this result. Where
  // the run streams, each row's line goes to `write_line`.
  void compute(const std::atomic<bool>& cancel,
               const std::function<void(std::string_view)>& write_line);
  // Command, version and options in one word: runs of the same have rows and parts in common.
  std::string run_identity() const;
  // Stopped before its last row.
  bool interrupted() const { return job_->interrupted(); }
  std::string render() const;
  // Writes all files but that of --output.
  void write_saves() const;
  // To standard error, where the format has no place for them.
  std::string notes_text() const;
  int exit_code() const { return job_->exit_code(); }

 private:
  void resolve_format();
  void choose_matrices();
  void check_targets() const;
  void check_shown(const std::vector<ResultRef>& results) const;
  void check_steps() const;
  void check_tokens() const;
  void check_shard() const;
  void require_computed(const std::string& name, std::string_view option) const;
  const AnyTensor* matrix(std::string_view name) const;
  Style style() const;

  const Command& command_;
  std::string title_;
  bool reads_stdin_;
  std::unique_ptr<Job> job_;
  OutputOptions output_;
  OptionSet options_;
  Format format_ = Format::table;
  std::vector<std::string> shown_;
  Request want_;
  std::optional<std::vector<StatePart>> parts_;
};

// The options of a command's runs: its own, then those of the output.
std::vector<OptionRef> run_options(Job& job, OutputOptions& output);

// Whether --output says the result goes to standard output.
bool to_stdout(const OutputOptions& output);

}  // namespace attnlab
