#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "attnlab/core/dtype.h"

namespace attnlab {

// Threads that are started when they are first needed and sleep between jobs: starting one costs
// more than waking it, and what a thread keeps for itself, such as a kernel's workspace, stays.
class ThreadPool {
 public:
  // The pool of this process: it starts over in a child of fork(), which has none of its parent's
  // threads, and its threads end with the process.
  static ThreadPool& shared();

  ThreadPool() = default;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ThreadPool(ThreadPool&&) = delete;
  ThreadPool& operator=(ThreadPool&&) = delete;
  ~ThreadPool() { stop(); }

  // Calls `work` here and, as threads of the pool are free to, `helpers` times elsewhere. Returns
  // when this call and those that had begun by then are done. `work` must not throw. It may call
  // run() in turn, and so may any thread: a caller never waits for a thread that does something
  // else.
  void run(Index helpers, const std::function<void()>& work);

  // Threads started so far.
  Index size() const;

  // Ends all threads. Jobs go on, and come, without their help.
  void stop();

 private:
  struct Job {
    const std::function<void()>& work;
    Index wanted;       // calls that no thread has taken yet
    Index running = 0;  // calls that threads of the pool are in
    std::condition_variable done{};
  };

  void grow(Index threads);
  void help();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job*> jobs_;  // that want more helpers, oldest first
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace attnlab
