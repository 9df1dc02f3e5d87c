#include "attnlab/core/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <system_error>

namespace attnlab {
namespace {

std::atomic<ThreadPool*> current{nullptr};
// Of the parent, kept in sight of leak checkers. It is left alone: its lock may be held by a thread
// that a child does not have.
std::atomic<ThreadPool*> forgotten{nullptr};

// The threads may stand in code that is about to be unloaded, or be missed by a leak checker,
// unless they end first.
struct StopAtExit {
  StopAtExit() = default;
  StopAtExit(const StopAtExit&) = delete;
  StopAtExit& operator=(const StopAtExit&) = delete;
  StopAtExit(StopAtExit&&) = delete;
  StopAtExit& operator=(StopAtExit&&) = delete;
  // The pool itself stays, for other threads that are still at work.
  ~StopAtExit() {
    if (ThreadPool* pool = current.load()) pool->stop();
  }
};

}  // namespace

ThreadPool& ThreadPool::shared() {
  static const int kForgetInChild =
      ::pthread_atfork(nullptr, nullptr, [] { forgotten = current.exchange(nullptr); });
  static const StopAtExit kStop;
  static_cast<void>(kForgetInChild);
  if (ThreadPool* pool = current.load()) return *pool;
  auto fresh = std::make_unique<ThreadPool>();
  ThreadPool* existing = nullptr;
  if (!current.compare_exchange_strong(existing, fresh.get())) return *existing;
  return *fresh.release();
}

void ThreadPool::run(Index helpers, const std::function<void()>& work) {
  if (helpers <= 0) return work();
  Job job{work, helpers};
  {
    const std::lock_guard lock(mutex_);
    grow(helpers);
    jobs_.push_back(&job);
  }
  for (Index i = 0; i < helpers; ++i) wake_.notify_one();
  work();
  std::unique_lock lock(mutex_);
  std::erase(jobs_, &job);
  job.done.wait(lock, [&] { return job.running == 0; });
}

Index ThreadPool::size() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(threads_);
}

void ThreadPool::stop() {
  std::vector<std::thread> ending;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ending.swap(threads_);
  }
  wake_.notify_all();
  for (std::thread& thread : ending) {
    // Work that ends the process runs this on a thread of the pool.
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void ThreadPool::grow(Index threads) {
  if (stopping_) return;
  try {
    while (std::ssize(threads_) < threads) threads_.emplace_back([this] { help(); });
  } catch (const std::system_error&) {
    // The system grants no more threads; those there are do the same work.
  }
}

void ThreadPool::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    Job& job = *jobs_.front();
    ++job.running;
    if (--job.wanted == 0) jobs_.erase(jobs_.begin());
    lock.unlock();
    job.work();
    lock.lock();
    // While the lock is held the caller cannot leave with the job.
    if (--job.running == 0) job.done.notify_one();
  }
}

}  // namespace attnlab
