#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "attnlab/core/buffer.h"
#include "attnlab/io/file_descriptor.h"

namespace attnlab {

// The bytes of a file, read in the parts that are asked for. What has no parts (standard input,
// pipes, devices) is read whole at the start, as long as there is memory for it.
class InputFile {
 public:
  // Opens `path`, or standard input for "-". Throws InputError naming `field`, the path and the
  // system's reason.
  InputFile(const std::string& path, std::string_view field);

  // Bytes at hand under a name.
  static InputFile in_memory(std::string bytes, std::string name);

  // The path, or "standard input": the source in error messages.
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  // Whether it is no regular file.
  bool is_stream() const { return !descriptor_.is_open(); }

  // Copies `count` bytes from `offset` on. Throws InputError when the file no longer has them.
  void read(std::uint64_t offset, void* to, std::size_t count) const;
  // `count` bytes from `offset` on without a copy: pages of the file, which live on when it is
  // closed or removed. Writing to them changes this process's view alone. Other processes that
  // change the file change the view, and reading what they cut off raises SIGBUS. Nothing where
  // there is no file, its system maps none, or they do not begin on a multiple of `alignment`
  // bytes. Throws InputError when the file no longer has them.
  std::optional<Buffer> map(std::uint64_t offset, std::size_t count,
                            std::size_t alignment = 1) const;
  // `count` bytes from `offset` on as a file of its own, called `name`. Throws InputError when the
  // file does not have them.
  InputFile part(std::uint64_t offset, std::uint64_t count, std::string name) const;
  // At most `count` bytes from the start.
  std::string head(std::size_t count) const;
  // All bytes. Throws InputError when they do not fit the memory.
  std::string text() const;

 private:
  InputFile() = default;

  std::string name_;
  std::uint64_t size_ = 0;
  FileDescriptor descriptor_;  // of a regular file
  std::uint64_t start_ = 0;    // in that file
  std::string bytes_;          // of everything else
};

}  // namespace attnlab
