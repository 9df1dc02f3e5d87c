#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "attnlab/core/dtype.h"

namespace attnlab {

// Memory that a thread keeps between calls, for what a kernel holds while it works: several arrays,
// each from the start of a cache line on. What is in them at first is left open.
class Workspace {
 public:
  // The thread's own.
  static Workspace& mine() {
    thread_local Workspace workspace;
    return workspace;
  }

  // Drops what was taken before; makes room for `bytes` in all, alignment included.
  void reset(std::size_t bytes) {
    used_ = 0;
    if (bytes <= capacity_) return;
    memory_.reset();
    memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
    capacity_ = bytes;
  }

  // The next `count` elements.
  template <class T>
  T* take(Index count) {
    T* start = reinterpret_cast<T*>(memory_.get() + used_);
    used_ += bytes_of<T>(count);
    return start;
  }

  template <class T>
  static std::size_t bytes_of(Index count) {
    constexpr std::size_t kLine = static_cast<std::size_t>(kAlignment);
    return (static_cast<std::size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0, used_ = 0;
};

}  // namespace attnlab
