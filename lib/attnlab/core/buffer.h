#pragma once

#include <cstddef>
#include <utility>

namespace attnlab {

// The raw memory of a tensor's elements, given back at the end of its life.
class Buffer {
 public:
  Buffer() = default;
  // Room for `count` elements of `element_bytes` each, from the start of a cache line (64 bytes)
  // on; what is in it is left open. Of 2 MiB on it lies on huge pages where the system grants them,
  // whose first touch costs a quarter. Throws std::bad_alloc.
  Buffer(std::size_t count, std::size_t element_bytes);
  // Takes over `bytes` from `start` on that mmap() has put there, in pages that hold nothing else.
  static Buffer of_mapping(void* start, std::size_t bytes);
  Buffer(Buffer&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)),
        bytes_(other.bytes_),
        origin_(other.origin_) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    std::swap(origin_, other.origin_);
    return *this;
  }
  ~Buffer() {
    if (start_ != nullptr) release();
  }

  void* data() const { return start_; }
  std::size_t bytes() const { return bytes_; }

 private:
  enum class Origin { allocated, allocated_huge, mapped };

  void release() const;

  void* start_ = nullptr;
  std::size_t bytes_ = 0;
  Origin origin_ = Origin::allocated;
};

}  // namespace attnlab
