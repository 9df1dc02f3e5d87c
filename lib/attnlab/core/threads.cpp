#include "attnlab/core/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "attnlab/core/thread_pool.h"

namespace attnlab {

Index thread_count(Index requested) {
  if (requested > 0) return requested;
  // Asking the system costs as much as a small call.
  static const auto kCores = static_cast<Index>(std::thread::hardware_concurrency());
  return std::max<Index>(1, kCores);
}

void parallel_for(Index threads, Index count, const std::function<void(Index)>& work) {
  threads = std::min(thread_count(threads), count);
  if (threads <= 1) {
    for (Index i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<Index> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto run = [&] {
    try {
      for (Index i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  ThreadPool::shared().run(threads - 1, run);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace attnlab
