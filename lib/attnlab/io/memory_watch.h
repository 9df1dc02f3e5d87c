#pragma once

#include <cstdint>
#include <string_view>

#include "attnlab/core/memory.h"

namespace attnlab {

// Asks for memory step by step where the size of what is built is known only at its end. Throws
// InputError as require_memory() does, while there is still room to do so.
class MemoryWatch {
 public:
  // `what` must outlive the watch.
  explicit MemoryWatch(std::string_view what) : what_(what) {}

  // Counts `bytes` more.
  void add(std::uint64_t bytes) {
    since_check_ += bytes;
    if (since_check_ < kStep) return;
    since_check_ = 0;
    // A growing vector holds its old and its new elements at once.
    total_ += kStep;
    require_memory(total_, what_);
  }

 private:
  static constexpr std::uint64_t kStep = std::uint64_t{1} << 26;

  std::string_view what_;
  std::uint64_t since_check_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace attnlab
