#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "attnlab/core/error.h"
#include "commands.h"
#include "exit_code.h"
#include "lost_input.h"

namespace {

int fail(const std::string& message, int exit_code) {
  std::fprintf(stderr, "attnlab: %s\n", message.c_str());
  return exit_code;
}

}  // namespace

// config file + flags -> typed options -> one library call -> a result -> a renderer
int main(int argc, char** argv) {
  // A closed pipe ends the program silently even where its parent ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  // A limit of file sizes is told as any failed write is.
  std::signal(SIGXFSZ, SIG_IGN);
  attnlab::end_on_lost_input();
  attnlab::Origins origins;
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return attnlab::run_command_line(attnlab::all_commands(), arguments, origins);
  } catch (const attnlab::InputError& error) {
    return fail(origins.located(error).what(), attnlab::kBadInput);
  } catch (const std::bad_alloc&) {
    return fail("not enough memory for what was asked", attnlab::kBadInput);
  } catch (const std::exception& error) {
    return fail(std::string("internal error: ") + error.what(), attnlab::kInternal);
  } catch (...) {
    return fail("internal error", attnlab::kInternal);
  }
}
