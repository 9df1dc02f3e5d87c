#pragma once

#include <atomic>

namespace attnlab {

// While it lives, the first Ctrl-C (SIGINT) or SIGTERM asks for the end of the run instead of
// ending the program; the second does that. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  InterruptGuard(InterruptGuard&&) = delete;
  InterruptGuard& operator=(InterruptGuard&&) = delete;
  ~InterruptGuard();

  // Set once a signal has come.
  const std::atomic<bool>& requested() const;
  // 130 after SIGINT, 143 after SIGTERM, as shells have it.
  int exit_code() const;
};

}  // namespace attnlab
