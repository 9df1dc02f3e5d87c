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

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
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
  if (surroundings.terminal_columns > 0) return Running(arguments, surroundings).finish();
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
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  outcome.exit_code = exit_code_of(status);
  outcome.out = contents(out);
  outcome.err = contents(err);
  return outcome;
}

Running::Running(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  if (surroundings.terminal_columns > 0) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(surroundings.terminal_columns);
    size.ws_row = 24;
    child_ = forkpty(&output_, nullptr, nullptr, &size);
    if (child_ < 0) throw std::runtime_error("forkpty failed");
    if (child_ == 0) become_binary(arguments, surroundings);
    return;
  }
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
  const File err = temporary_file();
  errors_ = dup(descriptor(err));
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("fork failed");
  if (child_ == 0) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(errors_, STDERR_FILENO);
    for (const int end : {ends[0], ends[1], errors_}) close(end);
    become_binary(arguments, surroundings);
  }
  close(ends[1]);
  output_ = ends[0];
}

Running::~Running() {
  if (!ended_) {
    kill(child_, SIGKILL);
    finish();
  }
  close(output_);
  if (errors_ >= 0) close(errors_);
}

bool Running::read_more() {
  char buffer[4096];
  // A terminal whose last program is gone reads as an error.
  const ssize_t n = read(output_, buffer, sizeof buffer);
  if (n > 0) outcome_.out.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

bool Running::shows(const std::string& text) {
  while (outcome_.out.find(text) == std::string::npos) {
    if (!read_more()) return false;
  }
  return true;
}

bool Running::runs() {
  int status = 0;
  if (!ended_ && waitpid(child_, &status, WNOHANG) == child_) {
    outcome_.exit_code = exit_code_of(status);
    ended_ = true;
  }
  return !ended_;
}

void Running::send(int signal) const {
  if (!ended_) kill(child_, signal);
}

Outcome Running::finish() {
  while (read_more()) {
  }
  if (!ended_) {
    int status = 0;
    waitpid(child_, &status, 0);
    outcome_.exit_code = exit_code_of(status);
    ended_ = true;
  }
  if (errors_ >= 0) {
    const File err(fdopen(dup(errors_), "r"), std::fclose);
    outcome_.err = contents(err);
  }
  return outcome_;
}

}  // namespace attnlab
