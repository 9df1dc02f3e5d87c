#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attnlab/io/file_descriptor.h"

namespace attnlab {

// A file that appears whole or not at all: what is written goes into a temporary file beside the
// target (the file a symbolic link points to), which takes its place, with its permissions, on
// commit() and is removed otherwise. Devices, pipes and the descriptors of this process
// (/dev/stdout, /dev/fd/3) are written directly. Every function throws InputError naming the field
// and the path.
class AtomicFile {
 public:
  AtomicFile(const std::string& path, std::string_view field);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  AtomicFile(AtomicFile&&) = delete;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Tells that `bytes` are about to be written in all, for the system to find their place at once.
  void expect(std::uint64_t bytes);
  void write(std::string_view bytes);
  // Flushes to the disk, then replaces the target.
  void commit();

 private:
  void create_temporary(unsigned mode);
  [[noreturn]] void fail(int error) const;

  std::string path_;       // as the user wrote it
  std::string field_;      // the option that named it
  std::string target_;     // behind symbolic links
  std::string temporary_;  // empty when the target is written directly
  FileDescriptor descriptor_;
};

// Throws InputError naming `field` when a file could not be created or replaced at `path` (missing
// folder, a folder of that name, no permission). Leaves nothing behind.
void check_writable(const std::string& path, std::string_view field);

// Puts `bytes` into `path`: into a temporary file beside it, flushed to the disk, then renamed, so
// that the path holds the old file or the whole new one. Devices and pipes (/dev/stdout) are
// written directly. Throws InputError, /dev/full included.
void write_file_atomically(const std::string& path, std::string_view bytes, std::string_view field);

// The whole of `path`, or of standard input for "-". Throws InputError when it cannot be read.
std::string read_file(const std::string& path, std::string_view field);

}  // namespace attnlab
