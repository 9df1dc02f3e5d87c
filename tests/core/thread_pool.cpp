#include "attnlab/core/thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "attnlab/core/threads.h"
#include "catch.h"

namespace attnlab {
namespace {

void wait_for(const std::atomic<int>& count, int wanted) {
  while (count < wanted) std::this_thread::yield();
}

TEST_CASE("a pool keeps its threads from job to job and starts more when more are asked for") {
  ThreadPool pool;
  CHECK(pool.size() == 0);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  const auto meet = [&](int threads) {
    std::atomic<int> arrived{0};
    pool.run(threads - 1, [&] {
      {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
      }
      ++arrived;
      wait_for(arrived, threads);
    });
  };
  for (int job = 0; job < 20; ++job) meet(3);
  CHECK(seen.size() == 3);
  CHECK(pool.size() == 2);
  meet(5);
  CHECK(seen.size() == 5);
  CHECK(pool.size() == 4);
}

TEST_CASE("a job returns without helpers that never came") {
  ThreadPool pool;
  std::atomic<bool> release{false};
  std::atomic<int> busy{0};
  // The only other thread is held up by one job while the next is done without it.
  std::thread first([&] {
    pool.run(1, [&] {
      ++busy;
      while (!release) std::this_thread::yield();
    });
  });
  wait_for(busy, 2);
  int calls = 0;
  pool.run(1, [&] { ++calls; });
  CHECK(calls == 1);
  release = true;
  first.join();
}

TEST_CASE("a job waits for the helpers that did come") {
  ThreadPool pool;
  for (int job = 0; job < 200; ++job) {
    std::atomic<int> begun{0}, ended{0};
    pool.run(3, [&] {
      ++begun;
      std::this_thread::yield();
      ++ended;
    });
    CHECK(begun == ended);
  }
}

TEST_CASE("a stopped pool leaves jobs to their callers") {
  ThreadPool pool;
  pool.run(2, [] {});
  pool.stop();
  CHECK(pool.size() == 0);
  int calls = 0;
  pool.run(2, [&] { ++calls; });
  CHECK(calls == 1);
  CHECK(pool.size() == 0);
}

TEST_CASE("parallel_for within parallel_for calls every index once") {
  constexpr Index kOuter = 8, kInner = 50;
  std::atomic<Index> calls{0};
  parallel_for(4, kOuter, [&](Index) {
    parallel_for(4, kInner, [&](Index) { parallel_for(2, 2, [&](Index) { ++calls; }); });
  });
  CHECK(calls == kOuter * kInner * 2);
}

TEST_CASE("parallel_for serves callers on several threads at once") {
  std::atomic<Index> calls{0};
  const auto many = [&] {
    for (int i = 0; i < 50; ++i) parallel_for(3, 40, [&](Index) { ++calls; });
  };
  std::thread first(many), second(many);
  first.join();
  second.join();
  CHECK(calls == 2 * 50 * 40);
}

TEST_CASE("parallel_for goes on as before after an exception, from a helper too") {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived{0};
    const auto caller = std::this_thread::get_id();
    CHECK_THROWS_AS(parallel_for(2, 2,
                                 [&](Index) {
                                   ++arrived;
                                   wait_for(arrived, 2);
                                   if (std::this_thread::get_id() != caller) throw round;
                                 }),
                    int);
    std::atomic<Index> calls{0};
    parallel_for(2, 100, [&](Index) { ++calls; });
    CHECK(calls == 100);
  }
}

// ThreadSanitizer refuses threads in the child of a process that had some.
#if defined(__SANITIZE_THREAD__)
#define ATTNLAB_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ATTNLAB_THREAD_SANITIZER
#endif
#endif
#ifndef ATTNLAB_THREAD_SANITIZER
TEST_CASE("parallel_for works in a child of fork, which has no threads of its parent's") {
  parallel_for(2, 100, [](Index) {});
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);  // rather than wait for ever
    std::atomic<int> arrived{0};
    parallel_for(2, 2, [&](Index) {
      ++arrived;
      wait_for(arrived, 2);
    });
    // Ends the threads as well, as at the end of any program.
    std::exit(arrived == 2 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace attnlab
