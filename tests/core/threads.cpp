#include "attnlab/core/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.h"

namespace attnlab {
namespace {

TEST_CASE("parallel_for calls every index once, whatever the threads") {
  for (const Index threads : {0, 1, 2, 3, 16}) {
    for (const Index count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      parallel_for(threads, count, [&](Index i) { ++calls[static_cast<std::size_t>(i)]; });
      CHECK(std::all_of(calls.begin(), calls.end(), [](const auto& n) { return n == 1; }));
    }
  }
}

TEST_CASE("parallel_for uses the threads it is given") {
  // Each of the two waits for the other, which one thread alone could not.
  std::atomic<int> arrived{0};
  parallel_for(2, 2, [&](Index) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  CHECK(arrived == 2);
}

TEST_CASE("parallel_for throws the first exception and stops the rest") {
  for (const Index threads : {1, 4}) {
    std::atomic<Index> calls{0};
    CHECK_THROWS_AS(parallel_for(threads, 1000000,
                                 [&](Index i) {
                                   ++calls;
                                   if (i == 3) throw std::runtime_error("three");
                                 }),
                    std::runtime_error);
    CHECK(calls < 1000000);
  }
}

TEST_CASE("an exception stops threads that are in the midst of their work") {
  std::atomic<int> arrived{0};
  std::atomic<Index> calls{0};
  CHECK_THROWS_AS(parallel_for(2, 2000,
                               [&](Index i) {
                                 ++calls;
                                 ++arrived;
                                 while (arrived < 2) std::this_thread::yield();
                                 if (i == 0) throw std::runtime_error("zero");
                                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
                               }),
                  std::runtime_error);
  CHECK(calls < 2000);
}

TEST_CASE("no number of threads is as many as there are cores") {
  CHECK(thread_count(5) == 5);
  CHECK(thread_count(0) >= 1);
  if (std::thread::hardware_concurrency() > 0) {
    CHECK(thread_count(0) == static_cast<Index>(std::thread::hardware_concurrency()));
  }
}

}  // namespace
}  // namespace attnlab
