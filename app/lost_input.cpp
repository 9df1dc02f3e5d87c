#include "lost_input.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "exit_code.h"

namespace attnlab {
namespace {

extern "C" void on_bus_error(int number, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) {
    // Not of a mapped file: the system's own way to end comes when the instruction is tried again.
    signal(number, SIG_DFL);
    return;
  }
  constexpr std::string_view kMessage =
      "attnlab: an input file ended early: it changed while it was read\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kBadInput);
}

}  // namespace

void end_on_lost_input() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace attnlab
