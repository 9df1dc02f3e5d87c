#include "attnlab/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "catch.h"
#include "files.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;
using namespace test;

std::string write_error(const std::string& path, const std::string& bytes = "new") {
  return error_of([&] { write_file_atomically(path, bytes, "output"); });
}

std::string check_error(const std::string& path) {
  return error_of([&] { check_writable(path, "output"); });
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  stat(path.c_str(), &status);
  return status.st_mode & 0777;
}

TEST_CASE("a written file holds the bytes and leaves no other behind") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x");
  const std::string bytes("a\0b\n", 4);
  write_file_atomically(path, bytes, "output");
  CHECK(bytes_of(path) == bytes);
  write_file_atomically(path, "", "output");
  CHECK(bytes_of(path).empty());
  CHECK(folder.entries() == 1);
  CHECK(read_file(folder.file("y", bytes), "config") == bytes);
}

TEST_CASE("a file ends with what was written, whatever was expected") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x");
  for (const std::size_t written : {std::size_t{3}, std::size_t{6} << 20, std::size_t{9} << 20}) {
    AtomicFile file(path, "output");
    file.expect(std::uint64_t{6} << 20);
    file.write(std::string(written, 'a'));
    file.commit();
    CHECK(bytes_of(path) == std::string(written, 'a'));
  }
  AtomicFile endless(path, "output");
  endless.expect(std::uint64_t{1} << 60);
  endless.write("b");
  endless.commit();
  CHECK(bytes_of(path) == "b");
}

TEST_CASE("a file that is not committed leaves the old one as it was") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x", "old");
  {
    AtomicFile file(path, "output");
    file.write("half of the n");
    CHECK(bytes_of(path) == "old");
    CHECK(folder.entries() == 2);
  }
  CHECK(bytes_of(path) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a new file follows the umask, a replaced one keeps its permissions") {
  const TemporaryFolder folder;
  const mode_t before = umask(027);
  write_file_atomically(folder.path("new"), "x", "output");
  const std::string old = folder.file("old", "old");
  chmod(old.c_str(), 0666);
  write_file_atomically(old, "new", "output");
  const std::string secret = folder.file("secret", "old");
  chmod(secret.c_str(), 0600);
  write_file_atomically(secret, "new", "output");
  umask(before);
  CHECK(mode_of(folder.path("new")) == 0640);
  CHECK(mode_of(old) == 0666);
  CHECK(bytes_of(old) == "new");
  CHECK(mode_of(secret) == 0600);
}

TEST_CASE("writing through symbolic links replaces the file behind them") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("deep"));
  folder.file("deep/target", "old");
  fs::create_symlink("deep/target", folder.path("link"));
  fs::create_symlink("link", folder.path("second"));
  write_file_atomically(folder.path("second"), "new", "output");
  CHECK(bytes_of(folder.path("deep/target")) == "new");
  CHECK(fs::is_symlink(folder.path("link")));
  CHECK(fs::is_symlink(folder.path("second")));
  fs::create_symlink("deep/later", folder.path("dangling"));
  write_file_atomically(folder.path("dangling"), "new", "output");
  CHECK(fs::is_symlink(folder.path("dangling")));
  CHECK(bytes_of(folder.path("deep/later")) == "new");
  fs::create_symlink("loop", folder.path("loop"));
  CHECK(contains(write_error(folder.path("loop")), "cannot be written"));
}

TEST_CASE("devices and pipes are written directly") {
  const TemporaryFolder folder;
  CHECK(write_error("/dev/null").empty());
  CHECK(contains(write_error("/dev/full"),
                 "output: got /dev/full, cannot be written: No space left on device"));
  fs::create_symlink("/dev/full", folder.path("full.npy"));
  CHECK(contains(write_error(folder.path("full.npy")), "No space left on device"));
  const std::string path = folder.path("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(check_error(path).empty());
  std::string got;
  {
    std::jthread reader([&] { got = bytes_of(path); });
    write_file_atomically(path, "through", "output");
  }
  CHECK(got == "through");
  CHECK(folder.entries() == 2);
}

TEST_CASE("a descriptor of the process is written where it stands") {
  const TemporaryFolder folder;
  const std::string path = folder.path("out");
  const int number = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(::write(number, "first ", 6) == 6);
  write_file_atomically("/dev/fd/" + std::to_string(number), "second", "output");
  ::close(number);
  CHECK(bytes_of(path) == "first second");
  CHECK(contains(write_error("/dev/fd/9999"), "cannot be written: Bad file descriptor"));
}

TEST_CASE("a path that cannot be written is refused before and at the writing") {
  const TemporaryFolder folder;
  const std::string missing = folder.path("no/x");
  CHECK(contains(check_error(missing),
                 "output: got " + missing + ", cannot be written: No such file or directory"));
  CHECK(contains(write_error(missing), "No such file or directory"));
  CHECK(contains(check_error(folder.path(".")), "Is a directory"));
  CHECK(contains(check_error(folder.path("x/")), "Is a directory"));
  CHECK(contains(check_error(folder.path("a/b") + std::string(5000, 'c')), "File name too long"));
  CHECK(contains(check_error(folder.file("file", "") + "/x"), "Not a directory"));
  CHECK(contains(check_error(""), "need the name of a file"));
  if (geteuid() != 0) {
    const std::string read_only = folder.file("read_only", "old");
    chmod(read_only.c_str(), 0444);
    CHECK(contains(check_error(read_only), "Permission denied"));
    CHECK(bytes_of(read_only) == "old");
  }
}

TEST_CASE("checking a path changes nothing") {
  const TemporaryFolder folder;
  CHECK(check_error(folder.path("new")).empty());
  CHECK(folder.entries() == 0);
  const std::string old = folder.file("old", "old");
  CHECK(check_error(old).empty());
  CHECK(bytes_of(old) == "old");
  CHECK(check_error("/dev/full").empty());
  CHECK(check_error(folder.path(std::string(255, 'n'))).empty());
  CHECK(folder.entries() == 1);
}

TEST_CASE("a failed rename removes what was written") {
  const TemporaryFolder folder;
  const std::string path = folder.path("x");
  AtomicFile file(path, "output");
  file.write("new");
  fs::create_directories(folder.path("x/y"));
  CHECK(contains(error_of([&] { file.commit(); }), "cannot be written"));
  CHECK(fs::is_directory(path));
}

TEST_CASE("a read error names the option, the path and the reason") {
  CHECK(contains(error_of([] { read_file("/nowhere/c.json", "config"); }),
                 "config: got /nowhere/c.json, cannot be read: No such file or directory"));
  CHECK(contains(error_of([] { read_file("/", "config"); }), "Is a directory"));
  CHECK(!read_file("/proc/self/status", "config").empty());
}

}  // namespace
}  // namespace attnlab
