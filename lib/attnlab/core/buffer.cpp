#include "attnlab/core/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <new>

namespace attnlab {
namespace {

// A vector's load that crosses the line of a cache counts as two: in the attention kernel V off the
// line cost 3% in all.
constexpr std::align_val_t kCacheLine{64};
constexpr std::size_t kHugePage = std::size_t{1} << 21;

std::size_t byte_count(std::size_t count, std::size_t element_bytes) {
  if (count > std::numeric_limits<std::ptrdiff_t>::max() / element_bytes) {
    throw std::bad_array_new_length();
  }
  return count * element_bytes;
}

}  // namespace

Buffer::Buffer(std::size_t count, std::size_t element_bytes)
    : bytes_(byte_count(count, element_bytes)) {
#ifdef MADV_HUGEPAGE
  if (bytes_ >= kHugePage) {
    start_ = ::operator new (bytes_, std::align_val_t{kHugePage});
    origin_ = Origin::allocated_huge;
    // The rest of the last page would be memory that nobody asked for. Refused advice changes
    // nothing but the speed.
    ::madvise(start_, bytes_ / kHugePage * kHugePage, MADV_HUGEPAGE);
    return;
  }
#endif
  start_ = ::operator new(bytes_, kCacheLine);
}

Buffer Buffer::of_mapping(void* start, std::size_t bytes) {
  Buffer buffer;
  buffer.start_ = start;
  buffer.bytes_ = bytes;
  buffer.origin_ = Origin::mapped;
  return buffer;
}

void Buffer::release() const {
  switch (origin_) {
    case Origin::allocated:
      ::operator delete(start_, kCacheLine);
      break;
    case Origin::allocated_huge:
      ::operator delete (start_, std::align_val_t{kHugePage});
      break;
    case Origin::mapped: {
      const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
      const std::size_t before = reinterpret_cast<std::uintptr_t>(start_) % page;
      ::munmap(static_cast<std::byte*>(start_) - before, before + bytes_);
      break;
    }
  }
}

}  // namespace attnlab
