#include "attnlab/io/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"

namespace attnlab {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;
// Some systems refuse to read more at once.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

std::string system_reason(int error) { return "cannot be read: " + system_message(error); }

InputError cut_short(const std::string& name) {
  return {name, "", "", "ended early: it changed while it was read"};
}

// Everything up to the end of the stream.
std::string read_stream(int descriptor, const std::string& name) {
  std::string bytes;
  std::size_t used = 0;
  for (;;) {
    if (used == bytes.size()) {
      const std::size_t wanted = std::max(kChunk, 2 * used);
      // What is made out of the bytes takes as much again; an endless stream ends here.
      require_memory(2 * wanted, name);
      bytes.resize(wanted);
    }
    const ssize_t got =
        ::read(descriptor, bytes.data() + used, std::min(bytes.size() - used, kMostAtOnce));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(name, "", "", system_reason(errno));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace

InputFile::InputFile(const std::string& path, std::string_view field) {
  if (path == "-") {
    name_ = "standard input";
    bytes_ = read_stream(STDIN_FILENO, name_);
    size_ = bytes_.size();
    return;
  }
  name_ = path;
  FileDescriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!opened.is_open() || ::fstat(opened.number(), &status) != 0) {
    throw InputError("", field, path, system_reason(errno));
  }
  if (S_ISDIR(status.st_mode)) throw InputError("", field, path, system_reason(EISDIR));
  // A terminal is typed at; other devices, such as /dev/zero, may have no end.
  if (S_ISCHR(status.st_mode) && ::isatty(opened.number()) == 0 && path != "/dev/null") {
    throw InputError("", field, path, "is a device: need a file or a pipe");
  }
  // Files that the kernel makes up say that they are empty.
  if (S_ISREG(status.st_mode) && status.st_size > 0) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    descriptor_ = std::move(opened);
  } else {
    bytes_ = read_stream(opened.number(), name_);
    size_ = bytes_.size();
  }
}

InputFile InputFile::in_memory(std::string bytes, std::string name) {
  InputFile file;
  file.name_ = std::move(name);
  file.size_ = bytes.size();
  file.bytes_ = std::move(bytes);
  return file;
}

void InputFile::read(std::uint64_t offset, void* to, std::size_t count) const {
  if (offset > size_ || count > size_ - offset) throw cut_short(name_);
  if (!descriptor_.is_open()) {
    if (count > 0) std::memcpy(to, bytes_.data() + offset, count);
    return;
  }
  char* next = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_.number(), next, std::min(count, kMostAtOnce),
                                static_cast<off_t>(start_ + offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(name_, "", "", system_reason(errno));
    if (got == 0) throw cut_short(name_);
    next += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

std::optional<Buffer> InputFile::map(std::uint64_t offset, std::size_t count,
                                     std::size_t alignment) const {
  offset += start_;
  if (!descriptor_.is_open() || count == 0 || offset % alignment != 0) return std::nullopt;
  const std::uint64_t page_offset = offset % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto before = static_cast<std::size_t>(page_offset);
  void* const pages = ::mmap(nullptr, before + count, PROT_READ | PROT_WRITE, MAP_PRIVATE,
                             descriptor_.number(), static_cast<off_t>(offset - before));
  if (pages == MAP_FAILED) return std::nullopt;
  Buffer buffer = Buffer::of_mapping(static_cast<char*>(pages) + before, count);
  // Mapping goes beyond the end without a word.
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0)
    throw InputError(name_, "", "", system_reason(errno));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (offset > size || count > size - offset) throw cut_short(name_);
  return buffer;
}

InputFile InputFile::part(std::uint64_t offset, std::uint64_t count, std::string name) const {
  if (offset > size_ || count > size_ - offset) throw cut_short(name_);
  InputFile file;
  file.name_ = std::move(name);
  file.size_ = count;
  if (descriptor_.is_open()) {
    file.start_ = start_ + offset;
    file.descriptor_ = FileDescriptor(::fcntl(descriptor_.number(), F_DUPFD_CLOEXEC, 0));
    if (!file.descriptor_.is_open()) throw InputError(name_, "", "", system_reason(errno));
  } else {
    file.bytes_ = bytes_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
  }
  return file;
}

std::string InputFile::head(std::size_t count) const {
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(count, size_)), '\0');
  read(0, bytes.data(), bytes.size());
  return bytes;
}

std::string InputFile::text() const {
  require_memory(size_, name_);
  return head(static_cast<std::size_t>(size_));
}

}  // namespace attnlab
