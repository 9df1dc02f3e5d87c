#include "run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <sstream>

#include "attnlab/core/text.h"
#include "attnlab/experiments/sweep.h"
#include "attnlab/io/atomic_file.h"
#include "attnlab/io/json.h"
#include "attnlab/io/tensor_file.h"
#include "options/echo.h"
#include "progress.h"
#include "terminal.h"

namespace attnlab {
namespace {

constexpr int kFileWidth = 80;

bool has_rows(const std::vector<ResultRef>& columns) {
  return std::any_of(columns.begin(), columns.end(), [](const ResultRef& column) {
    return std::holds_alternative<RowsRef>(column.value);
  });
}

bool is_keyword(std::string_view name) {
  return name == "default" || name == "all" || name == "none";
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(printable(word));
  return all;
}

std::string extension_of(const std::string& path) {
  return lower_case(std::filesystem::path(path).extension().string());
}

}  // namespace

Run::Run(const Command& command, std::string title, bool reads_stdin)
    : command_(command),
      title_(std::move(title)),
      reads_stdin_(reads_stdin),
      job_(command.job()),
      options_(run_options(*job_, output_)) {}

int Run::stdin_readers() const {
  int readers = reads_stdin_ ? 1 : 0;
  for (const OptionRef& option : options_.options()) {
    std::string path;
    if (const auto* source = std::get_if<TensorSource*>(&option.value)) path = (*source)->path;
    // Of the options that are a file, these are written.
    const bool written = option.name == "output" || option.name == "save_params";
    if (const auto* file = std::get_if<FilePath*>(&option.value); file != nullptr && !written) {
      path = (*file)->path;
    }
    if (path == "-" || path.starts_with("-:")) ++readers;
  }
  return readers;
}

void Run::prepare() {
  options_.check_ranges();
  resolve_format();
  check_shard();
  choose_matrices();
  check_targets();
}

void Run::compute(const std::atomic<bool>& cancel,
                  const std::function<void(std::string_view)>& write_line) {
  ProgressLine progress(command_.name, job_->is_experiment() && !output_.quiet);
  Watch watch;
  watch.cancel = &cancel;
  watch.progress = [&](double share) { progress.update(share); };
  watch.run = run_identity();
  if (parts_) watch.parts = &*parts_;
  Index rows = 0;
  if (streams()) {
    watch.row = [&](const std::vector<ResultRef>& cells) {
      progress.clear();
      write_line(jsonl_line(cells, watch.run));
      ++rows;
    };
  }
  job_->run(want_, watch);
  if (streams() && job_->interrupted()) write_line(interrupted_line(rows, watch.run));
  for (const std::string& name : output_.show) {
    if (!is_keyword(name)) require_computed(name, "show");
  }
  for (const NamedFile& file : output_.save) {
    require_computed(file.name, "save");
    if (const AnyTensor* tensor = matrix(file.name)) {
      check_tensor_shape(file.path, tensor->shape(), "save");
    }
  }
  std::erase_if(shown_, [&](const std::string& name) { return matrix(name) == nullptr; });
  check_shown(job_->results());
  check_steps();
  check_tokens();
}

std::string Run::render() const {
  const Report report{command_.name, options_.options(), job_->results(), job_->notes()};
  switch (format_) {
    case Format::json:
      return render_json(report, shown_);
    case Format::jsonl:
      return render_jsonl(report, shown_);
    case Format::csv:
      return render_csv(report, shown_);
    case Format::automatic:
    case Format::table:
      break;
  }
  if (output_.trace) return render_trace(report, style());
  if (auto table = job_->table(shown_, style())) return *std::move(table);
  return render_table(report, shown_, style());
}

void Run::write_saves() const {
  for (const NamedFile& file : output_.save) write_tensor(file.path, *matrix(file.name), "save");
  job_->save();
}

std::string Run::notes_text() const {
  std::string text;
  if (output_.quiet || format_ == Format::json) return text;
  for (const std::string& note : job_->notes()) {
    text += "attnlab: note: " + printable(note, 1000) + "\n";
  }
  return text;
}

void Run::resolve_format() {
  format_ = output_.format;
  if (format_ != Format::automatic) return;
  const std::string extension = extension_of(output_.output.path);
  if (extension == ".npy" || extension == ".npz" || extension == ".safetensors") {
    throw origins().error("output", output_.output.path,
                          "need a .json, .jsonl, .csv or text file; --save NAME=FILE writes "
                          "matrices");
  }
  format_ = extension == ".json"    ? Format::json
            : extension == ".jsonl" ? Format::jsonl
            : extension == ".csv"   ? Format::csv
                                    : Format::table;
}

void Run::choose_matrices() {
  const std::vector<ResultRef> columns = job_->columns();
  OutputOptions output = output_;
  // Outside a table there are no steps to walk through, but all their matrices.
  if (output.show == OutputOptions().show) {
    if (output.trace) output.show = {"all"};
    for (std::string& name : job_->also_shown()) output.show.push_back(std::move(name));
  }
  shown_ = shown_matrices(columns, output);
  // Beside rows a matrix may turn out to be absent; without rows it is certain to be in the way.
  if (!has_rows(columns)) check_shown(columns);

  std::vector<std::string> names;
  for (const ResultRef& column : columns) {
    if (column.is_matrix()) names.emplace_back(column.name);
  }
  if (output_.trace && !job_->walked_by().empty()) {
    throw origins().error(
        "trace", "true",
        fmt::format("{} shows no steps: {} does", command_.name, job_->walked_by()));
  }
  if (names.empty() && output_.trace) {
    throw origins().error("trace", "true", "this command has no matrices to walk through");
  }
  if (names.empty() && !output_.tokens.empty()) {
    throw origins().error("tokens", output_.tokens, "this command has no matrices to name");
  }
  // What a trace or --show all prints is what the calculation has; what is named has to be there.
  const bool all = std::find(output.show.begin(), output.show.end(), "all") != output.show.end();
  for (const std::string& name : output_.trace ? names : shown_) {
    if (output_.trace || all) {
      want_.add_step(name);
    } else {
      want_.add(name);
    }
  }
  for (const std::string& name : output_.show) {
    if (!is_keyword(name)) want_.add(name);
  }
  for (const NamedFile& file : output_.save) {
    if (std::find(names.begin(), names.end(), file.name) == names.end()) {
      throw origins().error("save", file.name, matrix_rule(file.name, names));
    }
    want_.add(file.name);
  }
}

void Run::check_targets() const {
  for (const NamedFile& file : output_.save) check_tensor_target(file.path, "save");
  if (!to_stdout(output_)) check_writable(output_.output.path, "output");
}

// What merge needs has a place in JSON only.
void Run::check_shard() const {
  for (const OptionRef& option : options_.options()) {
    const auto* const* text = std::get_if<std::string*>(&option.value);
    if (option.name != "shard" || text == nullptr || (*text)->empty()) continue;
    parse_shard(**text, std::numeric_limits<std::uint64_t>::max());
    if (format_ != Format::json) {
      throw origins().error("shard", **text, "needs --format json, which attnlab merge reads");
    }
  }
}

// FNV-1a.
std::string Run::run_identity() const {
  const std::string text = std::string(command_.name) + '\n' + ATTNLAB_VERSION + '\n' +
                           dump_json(options_to_json(job_->options()));
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

// The blame is on --output where its name chose the format.
void Run::check_shown(const std::vector<ResultRef>& results) const {
  if (output_.format != Format::automatic) {
    check_format(format_, results, shown_);
  } else if (const auto rule = format_conflict(format_, results, shown_)) {
    throw origins().error("output", output_.output.path, *rule);
  }
}

void Run::check_steps() const {
  if (!output_.trace) return;
  for (const ResultRef& result : job_->results()) {
    if (result.matrix() != nullptr) return;
  }
  throw origins().error("trace", "true", "this result holds rows and no matrices to walk through");
}

void Run::check_tokens() const {
  const std::vector<std::string> names = words(output_.tokens);
  if (names.empty()) return;
  if (shown_.empty()) {
    if (output_.show == std::vector<std::string>{"none"}) return;
    throw origins().error("tokens", output_.tokens, "this result shows no matrices to name");
  }
  const auto count = std::ssize(names);
  for (const std::string& name : shown_) {
    const Shape& shape = matrix(name)->shape();
    if (shape.rank() >= 1 && shape[-1] == count) return;
    if (shape.rank() >= 2 && shape[-2] == count) return;
  }
  throw origins().error("tokens", fmt::format("{} word{}", count, count == 1 ? "" : "s"),
                        "need one for each row or column of what is shown");
}

void Run::require_computed(const std::string& name, std::string_view option) const {
  if (matrix(name) != nullptr) return;
  for (const ResultRef& result : job_->results()) {
    if (result.name == name) {
      throw origins().error(option, name,
                            fmt::format("is not part of this result ({})", result.help));
    }
  }
}

const AnyTensor* Run::matrix(std::string_view name) const {
  for (const ResultRef& result : job_->results()) {
    if (result.name == name) return result.matrix();
  }
  return nullptr;
}

Style Run::style() const {
  const bool here = to_stdout(output_);
  Style style;
  style.width = here ? terminal_width() : kFileWidth;
  style.digits = static_cast<int>(output_.digits);
  style.color = use_color(output_.color, here);
  style.terminal = here && on_terminal();
  style.true_color = style.color && true_color_terminal();
  style.row_names = style.column_names = words(output_.tokens);
  return style;
}

std::vector<OptionRef> run_options(Job& job, OutputOptions& output) {
  std::vector<OptionRef> options = job.options();
  for (OptionRef& option : options_of(output)) {
    option.heading = "Output";
    options.push_back(option);
  }
  return options;
}

bool to_stdout(const OutputOptions& output) {
  return output.output.empty() || output.output.path == "-";
}

}  // namespace attnlab
