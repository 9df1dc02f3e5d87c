#include "attnlab/core/memory.h"

#include <limits>

#include "attnlab/core/error.h"
#include "catch.h"

namespace attnlab {
namespace {

TEST_CASE("amounts of memory read as people write them") {
  CHECK(memory_text(0) == "0 B");
  CHECK(memory_text(999) == "999 B");
  CHECK(memory_text(1000) == "1 kB");
  CHECK(memory_text(1500000) == "1.5 MB");
  CHECK(memory_text(999000000) == "999 MB");
  CHECK(memory_text(999499999) == "999 MB");
  CHECK(memory_text(999500000) == "1 GB");
  CHECK(memory_text(999999999) == "1 GB");
  CHECK(memory_text(320000000000) == "320 GB");
  CHECK(memory_text(std::numeric_limits<std::uint64_t>::max()) == "18.4 EB");
}

TEST_CASE("more memory than there is is refused with the estimate") {
  std::string message;
  try {
    require_memory(std::uint64_t{1} << 60, "weights");
  } catch (const InputError& error) {
    message = error.what();
  }
  CHECK(message.rfind("weights: needs 1.15 EB of memory, ", 0) == 0);
  CHECK(message.find(memory_text(available_memory()).substr(0, 1)) != std::string::npos);
}

TEST_CASE("memory that is there is granted") {
  CHECK(available_memory() > 0);
  CHECK_NOTHROW(require_memory(0, "weights"));
  CHECK_NOTHROW(require_memory(1 << 20, "weights"));
  CHECK_NOTHROW(require_memory(available_memory() / 4, "weights"));
}

}  // namespace
}  // namespace attnlab
