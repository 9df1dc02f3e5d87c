#include "attnlab/core/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace attnlab {

Index thread_count(Index requested) {
  if (requested > 0) return requested;
  return std::max<Index>(1, static_cast<Index>(std::thread::hardware_concurrency()));
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
  std::vector<std::jthread> pool;
  try {
    for (Index t = 1; t < threads; ++t) pool.emplace_back(run);
  } catch (const std::system_error&) {
    // The system grants no more threads; those there are do the same work.
  }
  run();
  pool.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace attnlab
