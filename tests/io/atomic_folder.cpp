#include "attnlab/io/atomic_folder.h"

#include "attnlab/io/atomic_file.h"
#include "catch.h"
#include "files.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;
using namespace test;

void write(const AtomicFolder& folder, const std::string& name, const std::string& bytes) {
  write_file_atomically(folder.file(name), bytes, "save_case");
}

TEST_CASE("a folder appears with all its files and leaves nothing beside it") {
  const TemporaryFolder folder;
  const std::string path = folder.path("new");
  {
    AtomicFolder made(path + "/", "save_case");
    write(made, "a", "1");
    write(made, "deep/b", "2");
    CHECK_FALSE(fs::exists(path));
    made.commit();
  }
  CHECK(bytes_of(path + "/a") == "1");
  CHECK(bytes_of(path + "/deep/b") == "2");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a folder that is not committed leaves what was there") {
  const TemporaryFolder folder;
  const std::string path = folder.path("old");
  fs::create_directory(path);
  folder.file("old/a", "old");
  {
    const AtomicFolder made(path, "save_case");
    write(made, "a", "new");
    CHECK(folder.entries() == 2);
  }
  CHECK(bytes_of(path + "/a") == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a folder takes the place of another with all it held, behind a link too") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path("old/deep"));
  folder.file("old/gone", "old");
  fs::create_directory_symlink("old", folder.path("link"));
  AtomicFolder made(folder.path("link"), "save_case");
  write(made, "a", "new");
  made.commit();
  CHECK(fs::is_symlink(folder.path("link")));
  CHECK(bytes_of(folder.path("old/a")) == "new");
  CHECK_FALSE(fs::exists(folder.path("old/gone")));
  CHECK_FALSE(fs::exists(folder.path("old/deep")));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a path that no folder can be made at is refused before the work") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path) {
    return error_of([&] { check_folder_writable(path, "save_case"); });
  };
  const std::string missing = folder.path("no/x");
  CHECK(contains(refused(missing),
                 "save_case: got " + missing + ", cannot be written: No such file or directory"));
  CHECK(contains(refused(folder.file("file", "x")), "Not a directory"));
  CHECK(contains(refused(""), "need the name of a folder"));
  CHECK(refused(folder.path("fine")).empty());
  const fs::path here = fs::current_path();
  fs::create_directories(folder.path("work/deep"));
  fs::current_path(folder.path("work/deep"));
  CHECK(contains(refused(".."), "save_case: got .., is where you work, need another folder"));
  CHECK(contains(refused(folder.path("work/deep/")), "is where you work"));
  CHECK(refused("new").empty());
  CHECK(refused(folder.path("work/dee")).empty());
  fs::current_path(here);
  fs::remove_all(folder.path("work"));
  CHECK(folder.entries() == 1);
}

}  // namespace
}  // namespace attnlab
