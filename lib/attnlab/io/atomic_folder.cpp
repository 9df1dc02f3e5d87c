#include "attnlab/io/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "attnlab/core/error.h"
#include "attnlab/io/file_descriptor.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

// Behind links and without a slash at the end.
std::string real_path(const std::string& path) {
  std::error_code error;
  fs::path target = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) return path;
  if (target.filename().empty()) target = target.parent_path();
  return target.string();
}

// Whoever works in a folder that is replaced would be left in the old one.
bool is_worked_in(const std::string& folder) {
  std::error_code error;
  const std::string here = fs::canonical(fs::current_path(error), error).string();
  return !error && (here + "/").starts_with(folder + "/");
}

}  // namespace

AtomicFolder::AtomicFolder(const std::string& path, std::string_view field)
    : path_(path), field_(field), target_(real_path(path)) {
  struct stat status {};
  if (path.empty()) throw InputError("", field, "\"\"", "need the name of a folder");
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && !S_ISDIR(status.st_mode)) fail(ENOTDIR);
  if (exists && ::access(target_.c_str(), W_OK) != 0) fail(errno);
  if (exists && is_worked_in(target_)) {
    throw InputError("", field, path, "is where you work, need another folder");
  }
  create_temporary();
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void AtomicFolder::create_temporary() {
  for (int attempt = 0;; ++attempt) {
    const std::string name =
        ".attnlab-" + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp";
    const std::string folder = (fs::path(target_).parent_path() / name).string();
    if (::mkdir(folder.c_str(), 0777) == 0) {
      temporary_ = folder;
      return;
    }
    if (errno != EEXIST) fail(errno);
  }
}

std::string AtomicFolder::file(const std::string& name) const {
  const fs::path place = fs::path(temporary_) / name;
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) fail(error.value());
  return place.string();
}

// Swaps the two in one step, where the system and the file system can.
bool AtomicFolder::exchange() const {
#ifdef RENAME_EXCHANGE
  return ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0;
#else
  return false;
#endif
}

void AtomicFolder::commit() {
  // An empty folder gives way, too.
  if (::rename(temporary_.c_str(), target_.c_str()) == 0) {
    temporary_.clear();
    return;
  }
  if (errno != ENOTEMPTY && errno != EEXIST) fail(errno);
  if (!exchange()) {
    const std::string old = temporary_ + ".old";
    if (::rename(target_.c_str(), old.c_str()) != 0) fail(errno);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      const int error = errno;
      ::rename(old.c_str(), target_.c_str());
      fail(error);
    }
    temporary_ = old;
  }
  std::error_code error;
  fs::remove_all(temporary_, error);
  temporary_.clear();
}

void AtomicFolder::fail(int error) const {
  throw InputError("", field_, path_, "cannot be written: " + system_message(error));
}

void check_folder_writable(const std::string& path, std::string_view field) {
  AtomicFolder(path, field);
}

}  // namespace attnlab
