#include "attnlab/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "attnlab/core/error.h"
#include "attnlab/io/input_file.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

// The number of the open descriptor that a path like /dev/stdout or /dev/fd/3 stands for. Opening
// such a path again would start at its beginning, over what was written before.
std::optional<int> named_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (path.substr(0, folder.size()) != folder) continue;
    int number = -1;
    const char* end = path.data() + path.size();
    const auto [stop, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc() && stop == end && number >= 0) return number;
  }
  return std::nullopt;
}

// Where a chain of symbolic links ends, even when nothing is there yet. Gives up after as many
// steps as the system would take.
std::string behind_links(const std::string& path) {
  fs::path target = path;
  std::error_code error;
  for (int step = 0; step < 40 && fs::is_symlink(fs::symlink_status(target, error)); ++step) {
    target = target.parent_path() / fs::read_symlink(target, error);
  }
  return target.string();
}

// Unique in the folder of `target`, and short, whatever the length of the target's own name.
std::string temporary_name(const std::string& target, int attempt) {
  const fs::path name =
      ".attnlab-" + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp";
  return (fs::path(target).parent_path() / name).string();
}

// Gives a file the owner and the permissions of the one it will replace, as far as the user and the
// file system allow: it was created with no more permissions than these.
void inherit(int descriptor, const struct stat& old) {
  if (::fchown(descriptor, old.st_uid, old.st_gid) != 0) errno = 0;
  if (::fchmod(descriptor, old.st_mode & 0777) != 0) errno = 0;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, std::string_view field)
    : path_(path), field_(field), target_(behind_links(path)) {
  struct stat status {};
  if (path.empty()) throw InputError("", field, "\"\"", "need the name of a file");
  const auto number = named_descriptor(path);
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!number && !exists && errno != ENOENT) fail(errno);
  if (path.back() == '/' || (exists && S_ISDIR(status.st_mode))) fail(EISDIR);
  if (number) {
    descriptor_ = FileDescriptor(::fcntl(*number, F_DUPFD_CLOEXEC, 0));
  } else if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    // The folder's permissions would allow a read-only file to be replaced; its owner does not.
    if (exists && ::access(path.c_str(), W_OK) != 0) fail(errno);
    create_temporary(exists ? status.st_mode & 0777 : 0666);
    if (exists) inherit(descriptor_.number(), status);
  }
  if (!descriptor_.is_open()) fail(errno);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::create_temporary(unsigned mode) {
  for (int attempt = 0;; ++attempt) {
    const std::string name = temporary_name(target_, attempt);
    // open() applies the umask where mkstemp() would not.
    descriptor_ =
        FileDescriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (descriptor_.is_open()) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) fail(errno);
  }
}

void AtomicFile::expect([[maybe_unused]] std::uint64_t bytes) {
#ifdef FALLOC_FL_KEEP_SIZE
  constexpr std::uint64_t kWorthIt = std::uint64_t{1} << 22;
  if (temporary_.empty() || bytes < kWorthIt) return;
  // Where there is no place, or none that can be reserved, write() finds out.
  if (::fallocate(descriptor_.number(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0) {
    errno = 0;
  }
#endif
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t most = std::min(bytes.size(), std::size_t{1} << 30);
    const ssize_t written = ::write(descriptor_.number(), bytes.data(), most);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  const bool direct = temporary_.empty();
  if (!direct && ::fsync(descriptor_.number()) != 0) fail(errno);
  if (!descriptor_.close()) fail(errno);
  if (direct) return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void AtomicFile::fail(int error) const {
  throw InputError("", field_, path_, "cannot be written: " + system_message(error));
}

void check_writable(const std::string& path, std::string_view field) {
  struct stat status {};
  // Opening a pipe would wait for its reader, and closing it would end what the reader sees.
  if (!named_descriptor(path) && ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    if (::access(path.c_str(), W_OK) == 0) return;
  }
  AtomicFile(path, field);
}

void write_file_atomically(const std::string& path, std::string_view bytes,
                           std::string_view field) {
  AtomicFile file(path, field);
  file.write(bytes);
  file.commit();
}

std::string read_file(const std::string& path, std::string_view field) {
  return InputFile(path, field).text();
}

}  // namespace attnlab
