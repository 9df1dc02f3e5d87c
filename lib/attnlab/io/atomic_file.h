#pragma once

#include <string>
#include <string_view>

namespace attnlab {

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
