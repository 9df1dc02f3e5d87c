#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/request.h"
#include "attnlab/core/watch.h"
#include "options/flags.h"
#include "options/option_set.h"
#include "options/origins.h"
#include "render/report.h"

namespace attnlab {

// One run of a command without its types: its options, and once run its result.
class Job {
 public:
  virtual ~Job() = default;
  virtual std::vector<OptionRef> options() = 0;
  // What results hold, before there is one.
  virtual std::vector<ResultRef> columns() const = 0;
  // The one library call. `watch` is for commands that run long.
  virtual void run(const Request& want, const Watch& watch) = 0;
  // Whether the command is an experiment, whose rows are told to the watch as they come.
  virtual bool is_experiment() const = 0;
  virtual std::vector<ResultRef> results() const = 0;
  virtual const std::vector<std::string>& notes() const = 0;
  // Matrices that the options ask for, printed beside those that always are.
  virtual std::vector<std::string> also_shown() const = 0;
  // Text for people where the command has a form of its own, else nothing. `shown` are the
  // matrices to print.
  virtual std::optional<std::string> table(const std::vector<std::string>& shown,
                                           const Style& style) const = 0;
  // Writes what the options ask for besides the matrices of --save.
  virtual void save() const = 0;
  // What walks through the steps where --trace of this command does not; else empty.
  virtual std::string_view walked_by() const = 0;
  virtual int exit_code() const = 0;
  // Whether the run was stopped before its last row.
  virtual bool interrupted() const = 0;
};

struct Command;

// A command and its arguments, as the user called it.
struct Invocation {
  const Command& command;
  std::span<const Command> commands;  // all there are
  std::span<const std::string> arguments;
  Origins& origins;  // is set to the origins of the options at work, for errors thrown out of it
};

struct Command {
  std::string_view name;
  std::string_view summary;
  std::string_view examples;
  // What computes: a fresh job with default options.
  std::function<std::unique_ptr<Job>()> job;
  // What works on other commands (schema, run) has a function of its own instead.
  int (*direct)(const Invocation& invocation) = nullptr;
};

// What a command may bring besides its library function.
template <class Options, class Result>
struct Hooks {
  // Matrices that the options ask for (softmax --jacobian), printed beside those that always are.
  std::vector<std::string> (*also_shown)(const Options&) = nullptr;
  // Text for people in place of the usual table; nothing where the usual one will do.
  std::optional<std::string> (*table)(const Options&, const Result&,
                                      const std::vector<std::string>& shown,
                                      const Style&) = nullptr;
  // Files that options name besides --save and --output.
  void (*save)(const Options&, const Result&) = nullptr;
  // Refuses --trace, naming what to use instead.
  std::string_view walked_by = {};
  // 1 when a check the user asked for failed.
  int (*exit_code)(const Result&) = nullptr;
};

namespace detail {

template <class Options, class Result>
class TypedJob final : public Job {
 public:
  // Of commands that give matrices, and of experiments.
  using Function = std::variant<Result (*)(const Options&, const Request&),
                                Result (*)(const Options&, const Watch&)>;

  TypedJob(Function function, const Hooks<Options, Result>& hooks)
      : function_(function), hooks_(hooks) {}

  std::vector<OptionRef> options() override { return options_of(options_); }
  std::vector<ResultRef> columns() const override { return columns_of<Result>(); }
  void run(const Request& want, const Watch& watch) override {
    result_ = is_experiment() ? std::get<1>(function_)(options_, watch)
                              : std::get<0>(function_)(options_, want);
  }
  bool is_experiment() const override { return function_.index() == 1; }
  std::vector<ResultRef> results() const override { return result_of(result_); }
  const std::vector<std::string>& notes() const override { return result_.notes; }
  std::vector<std::string> also_shown() const override {
    if (hooks_.also_shown == nullptr) return {};
    return hooks_.also_shown(options_);
  }
  std::optional<std::string> table(const std::vector<std::string>& shown,
                                   const Style& style) const override {
    if (hooks_.table == nullptr) return std::nullopt;
    return hooks_.table(options_, result_, shown, style);
  }
  void save() const override {
    if (hooks_.save != nullptr) hooks_.save(options_, result_);
  }
  std::string_view walked_by() const override { return hooks_.walked_by; }
  int exit_code() const override {
    return hooks_.exit_code == nullptr ? 0 : hooks_.exit_code(result_);
  }
  bool interrupted() const override {
    if constexpr (requires { result_.status.interrupted; }) {
      return result_.status.interrupted;
    } else {
      return false;
    }
  }

 private:
  Options options_;
  Result result_;
  Function function_;
  Hooks<Options, Result> hooks_;
};

}  // namespace detail

// A command that makes one library call: of an experiment with a Watch, of others with a Request.
template <class Options, class Result, class Outside>
Command make_command(std::string_view name, std::string_view summary, std::string_view examples,
                     Result (*run)(const Options&, const Outside&),
                     std::type_identity_t<Hooks<Options, Result>> hooks = {}) {
  return {name, summary, examples, [run, hooks]() -> std::unique_ptr<Job> {
            return std::make_unique<detail::TypedJob<Options, Result>>(run, hooks);
          }};
}

// The flags of a command that works on others, put into `options`; nothing where they ask for help,
// which is then printed.
std::optional<FlagValues> flags_or_help(const Invocation& invocation, OptionSet& options);

// The command of that name. Throws InputError with the nearest name, said of `source` and `field`.
const Command& find_command(std::span<const Command> commands, std::string_view name,
                            std::string_view source = "command line", std::string_view field = "");

// Runs what the arguments after the program's name say: a command, --help, --version. Returns the
// exit code. Throws InputError for anything wrong with them; `origins` then tells where the option
// it names came from.
int run_command_line(std::span<const Command> commands, std::span<const std::string> arguments,
                     Origins& origins);

}  // namespace attnlab
