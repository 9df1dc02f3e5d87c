#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "attnlab/core/error.h"
#include "options/numbers.h"

namespace attnlab {
namespace {

constexpr int kMinWidth = 20;
constexpr int kMaxWidth = 1000;
constexpr int kUsualWidth = 80;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool on_terminal() { return isatty(STDOUT_FILENO) == 1; }

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::clamp(static_cast<int>(size.ws_col), kMinWidth, kMaxWidth);
  }
  const Index columns = parse_integer(environment("COLUMNS")).value_or(0);
  if (columns <= 0) return kUsualWidth;
  return static_cast<int>(std::clamp<Index>(columns, kMinWidth, kMaxWidth));
}

bool use_color(Color choice, bool to_stdout) {
  if (choice != Color::automatic) return choice == Color::always;
  return to_stdout && on_terminal() && environment("NO_COLOR").empty() &&
         environment("TERM") != "dumb";
}

bool true_color_terminal() {
  const std::string_view colors = environment("COLORTERM");
  return colors == "truecolor" || colors == "24bit";
}

void write_stdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw InputError("standard output", "", "",
                       std::string("cannot be written: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace attnlab
