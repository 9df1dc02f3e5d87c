#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace attnlab {

// "12 s", "3 min", "2 h": how long `seconds` are, roughly.
std::string duration_text(double seconds);

// One line on a terminal's standard error that tells how far a run is and how long it still takes;
// nothing where standard error is no terminal. The line goes when the run ends.
class ProgressLine {
 public:
  ProgressLine(std::string_view name, bool wanted);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ProgressLine(ProgressLine&&) = delete;
  ProgressLine& operator=(ProgressLine&&) = delete;
  ~ProgressLine();

  // `share` of the work is done.
  void update(double share);
  // Takes the line away, for other text to stand there.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string name_;
  bool active_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

}  // namespace attnlab
