#pragma once

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

}  // namespace attnlab
