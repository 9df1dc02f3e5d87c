#include "attnlab/core/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include "attnlab/core/tensor.h"
#include "catch.h"

namespace attnlab {
namespace {

constexpr std::size_t kMebi = std::size_t{1} << 20;

std::uintptr_t address(const Buffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data());
}

TEST_CASE("a buffer of any size can be written from end to end") {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, kMebi, 2 * kMebi - 1, 2 * kMebi, 5 * kMebi + 3}) {
    const Buffer buffer(bytes, 1);
    REQUIRE(buffer.data() != nullptr);
    CHECK(buffer.bytes() == bytes);
    auto* byte = static_cast<unsigned char*>(buffer.data());
    for (std::size_t i = 0; i < bytes; ++i) byte[i] = static_cast<unsigned char>(i);
    CHECK((bytes == 0 || byte[bytes - 1] == static_cast<unsigned char>(bytes - 1)));
  }
}

TEST_CASE("a buffer starts on a cache line") {
  for (std::size_t count = 1; count < 200; ++count) {
    const Buffer first(count, 1), second(count, 4);
    CHECK(address(first) % 64 == 0);
    CHECK(address(second) % 64 == 0);
  }
}

#ifdef MADV_HUGEPAGE
TEST_CASE("a buffer that huge pages fit in starts at one") {
  CHECK(address(Buffer(2 * kMebi, 1)) % (2 * kMebi) == 0);
  CHECK(address(Buffer(kMebi, 5)) % (2 * kMebi) == 0);
}
#endif

TEST_CASE("a buffer whose bytes overflow is not had") {
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_AS(Buffer(most / 2, 4), std::bad_alloc);
  CHECK_THROWS_AS(Buffer(most / 8 + 2, 8), std::bad_alloc);
}

TEST_CASE("a buffer of a mapping unmaps its pages once, when its last owner ends") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  const auto is_mapped = [&](std::size_t i) {
    return msync(static_cast<char*>(pages) + i * page, page, MS_ASYNC) == 0;
  };
  {
    Buffer last;
    {
      Buffer first = Buffer::of_mapping(static_cast<char*>(pages) + 64, 2 * page - 64);
      CHECK(address(first) == reinterpret_cast<std::uintptr_t>(pages) + 64);
      last = std::move(first);
      const Buffer moved(std::move(last));
      last = Buffer(1, 1);
      CHECK(is_mapped(0));
    }
    CHECK_FALSE(is_mapped(0));
    CHECK_FALSE(is_mapped(1));
  }
}

TEST_CASE("a tensor in a buffer has its bytes for elements, and copies are its own") {
  Buffer buffer(3, sizeof(float));
  auto* values = static_cast<float*>(buffer.data());
  values[0] = 1;
  values[1] = 2;
  values[2] = 3;
  Tensor<float> tensor = Tensor<float>::in(std::move(buffer), {3});
  CHECK(tensor.data() == values);
  const Tensor<float> copy = tensor;
  tensor[1] = 20;
  CHECK(copy[1] == 2);
  CHECK(copy[2] == 3);
  CHECK(std::move(tensor).reshaped({3, 1}).data() == values);
}

}  // namespace
}  // namespace attnlab
