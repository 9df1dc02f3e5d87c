#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace attnlab {
namespace {

constexpr std::chrono::milliseconds kQuietStart{500};
constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.0f} h", seconds / 3600);
}

ProgressLine::ProgressLine(std::string_view name, bool wanted)
    : name_(name),
      active_(wanted && isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::update(double share) {
  if (!active_ || !(share > 0)) return;
  const Clock::time_point now = Clock::now();
  // A run that is soon over shows nothing.
  if (now - start_ < kQuietStart || now - last_ < kInterval) return;
  last_ = now;
  const std::chrono::duration<double> spent = now - start_;
  const double left = spent.count() * (1 - share) / share;
  fmt::print(stderr, "\r\033[K{}: {:.0f}%, about {} left", name_, 100 * share, duration_text(left));
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace attnlab
