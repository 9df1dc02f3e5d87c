#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace attnlab {

// What a program left behind.
struct Outcome {
  int exit_code = 0;  // 128 + the signal when one ended it, as shells have it
  std::string out;
  std::string err;
};

// How the program is started, besides its arguments.
struct Surroundings {
  std::string stdin_text = {};
  // Added to the environment; an empty value removes the variable.
  std::map<std::string, std::string> environment = {};
  std::filesystem::path folder = {};  // to work in
  // Where its standard output goes instead of into Outcome::out ("/dev/full").
  std::string stdout_path = {};
  // Standard output is a pipe whose reader is gone.
  bool closed_pipe = false;
  // Standard output and error are a terminal of that many columns; all is in Outcome::out.
  int terminal_columns = 0;
};

// Runs the attnlab binary, waits for it and returns what it left. Variables that steer colours and
// width (NO_COLOR, COLUMNS, TERM) are unset unless given.
Outcome attnlab(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});

// The binary at work while the test looks on. Its standard output is a pipe, or the terminal with
// standard error; of the surroundings stdin_text, stdout_path and closed_pipe do not apply.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments,
                   const Surroundings& surroundings = {});
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  // Kills what has not been waited for.
  ~Running();

  // Waits until its output has `text`; false when it ended without.
  bool shows(const std::string& text);
  const std::string& output() const { return outcome_.out; }
  // Whether it has not ended yet.
  bool runs();
  void send(int signal) const;
  // Waits for its end.
  Outcome finish();

 private:
  bool read_more();

  pid_t child_ = -1;
  int output_ = -1;
  int errors_ = -1;  // a file to read standard error back from
  bool ended_ = false;
  Outcome outcome_;
};

}  // namespace attnlab
