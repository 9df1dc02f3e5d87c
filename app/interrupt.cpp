#include "interrupt.h"

#include <csignal>

namespace attnlab {
namespace {

constexpr int kSignalExit = 128;

std::atomic<bool> g_requested{false};
std::atomic<int> g_signal{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may touch nothing else");

extern "C" void on_signal(int number) {
  g_signal = number;
  g_requested = true;
}

void set_handler(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  g_requested = false;
  // Once only, so that a second one ends a program that does not come to its end.
  set_handler(on_signal, SA_RESTART | static_cast<int>(SA_RESETHAND));
}

InterruptGuard::~InterruptGuard() { set_handler(SIG_DFL, 0); }

const std::atomic<bool>& InterruptGuard::requested() const { return g_requested; }

int InterruptGuard::exit_code() const { return kSignalExit + g_signal; }

}  // namespace attnlab
