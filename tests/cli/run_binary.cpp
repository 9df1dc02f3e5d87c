#include "cli/run_binary.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace attnlab {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary_file() {
  File file(std::tmpfile(), std::fclose);
  if (!file) throw std::runtime_error("tmpfile failed");
  return file;
}

int descriptor(const File& file) { return fileno(file.get()); }

std::string contents(const File& file) {
  std::string text;
  std::rewind(file.get());
  for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) {
    text += static_cast<char>(c);
  }
  return text;
}

// In the child: becomes the binary, or ends with 127.
[[noreturn]] void become_binary(const std::vector<std::string>& arguments,
                                const Surroundings& surroundings) {
  for (const char* name : {"NO_COLOR", "COLUMNS", "TERM", "COLORTERM"}) unsetenv(name);
  for (const auto& [name, value] : surroundings.environment) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  if (!surroundings.folder.empty() && chdir(surroundings.folder.c_str()) != 0) _exit(127);
  std::vector<char*> argv;
  std::string program = ATTNLAB_BINARY;
  argv.push_back(program.data());
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

int exit_code_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Outcome run_on_terminal(const std::vector<std::string>& arguments,
                        const Surroundings& surroundings) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(surroundings.terminal_columns);
  size.ws_row = 24;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) throw std::runtime_error("forkpty failed");
  if (child == 0) become_binary(arguments, surroundings);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t n = read(terminal, buffer, sizeof buffer); n > 0;
       n = read(terminal, buffer, sizeof buffer)) {
    outcome.out.append(buffer, static_cast<std::size_t>(n));
  }
  outcome.exit_code = exit_code_of(child);
  close(terminal);
  return outcome;
}

// What the child's standard output is to be.
int open_stdout(const Surroundings& surroundings, const File& captured) {
  if (surroundings.closed_pipe) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
    close(ends[0]);
    return ends[1];
  }
  if (surroundings.stdout_path.empty()) return dup(descriptor(captured));
  return open(surroundings.stdout_path.c_str(), O_WRONLY | O_CREAT, 0666);
}

}  // namespace

Outcome attnlab(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  if (surroundings.terminal_columns > 0) return run_on_terminal(arguments, surroundings);
  const File in = temporary_file(), out = temporary_file(), err = temporary_file();
  std::fwrite(surroundings.stdin_text.data(), 1, surroundings.stdin_text.size(), in.get());
  std::rewind(in.get());
  const int output = open_stdout(surroundings, out);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    dup2(descriptor(in), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(descriptor(err), STDERR_FILENO);
    close(output);
    become_binary(arguments, surroundings);
  }
  close(output);
  Outcome outcome;
  outcome.exit_code = exit_code_of(child);
  outcome.out = contents(out);
  outcome.err = contents(err);
  return outcome;
}

}  // namespace attnlab
