#include "attnlab/core/peak_memory.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "catch.h"

namespace attnlab {
namespace {

constexpr std::size_t kMiB = 1 << 20;
// Not counted to the page by the system.
constexpr double kSlack = 0.25;

// Writes `mib` MiB, in one piece, and gives them back.
void touch(std::size_t mib) {
  const auto bytes = std::make_unique_for_overwrite<unsigned char[]>(mib * kMiB);
  std::fill_n(bytes.get(), mib * kMiB, static_cast<unsigned char>(mib));
  // Read, so that they are written.
  CHECK(bytes[mib * kMiB / 2] == mib);
}

double mib_of(const std::function<void()>& work) {
  return static_cast<double>(peak_memory(work).value()) / kMiB;
}

// Whether there is a figure to hold against: the address sanitizer keeps what is given back.
bool is_told() {
#if defined(__SANITIZE_ADDRESS__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return false;
#endif
#endif
  return peak_memory([] {}).has_value();
}

TEST_CASE("peak memory is what was touched at once, given back or not") {
  int calls = 0;
  peak_memory([&] { ++calls; });
  CHECK(calls == 1);
  if (!is_told()) return;
  CHECK(mib_of([] { touch(64); }) == Approx(64).epsilon(kSlack));
  CHECK(mib_of([] {
          touch(64);
          touch(48);
        }) == Approx(64).epsilon(kSlack));
  CHECK(mib_of([] {}) < 8);
}

TEST_CASE("peak memory starts anew from what stands, whatever was touched before") {
  if (!is_told()) return;
  touch(128);
  CHECK(mib_of([] { touch(32); }) == Approx(32).epsilon(kSlack));
  const std::vector<unsigned char> held(64 * kMiB, 1);
  CHECK(mib_of([] { touch(32); }) == Approx(32).epsilon(kSlack));
  CHECK(held.back() == 1);
}

TEST_CASE("peak memory counts what the allocator had kept back") {
  if (!is_told()) return;
  // The first release of a large piece teaches the allocator to keep pieces of its size.
  const auto pieces = [] {
    for (int i = 0; i < 3; ++i) touch(24);
  };
  pieces();
  CHECK(mib_of(pieces) == Approx(24).epsilon(kSlack));
  CHECK(mib_of(pieces) == Approx(24).epsilon(kSlack));
}

}  // namespace
}  // namespace attnlab
