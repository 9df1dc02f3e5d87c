#include <sys/stat.h>

#include <fstream>

#include "catch.h"
#include "cli/run_binary.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

TEST_CASE("an input that is cut short while it is read ends in one line and exit 2") {
  const TemporaryFolder folder;
  REQUIRE(
      attnlab({"attend", "--n", "4096", "--d-k", "64", "--kernel", "tiled", "--show", "none",
               "--quiet", "--save", "q=" + (folder / "q.npy"), "--save", "v=" + (folder / "v.npy")})
          .exit_code == 0);
  REQUIRE(mkfifo((folder / "k.npy").c_str(), 0600) == 0);
  Running running({"attend", "--q", folder / "q.npy", "--k", folder / "k.npy", "--v",
                   folder / "v.npy", "--show", "none"});
  // Opened from both ends once Q is at hand and K begins to be read.
  std::ofstream k(folder / "k.npy", std::ios::binary);
  std::filesystem::resize_file(folder / "q.npy", 4096);
  k << folder.read("v.npy");
  k.close();
  const Outcome outcome = running.finish();
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err == "attnlab: an input file ended early: it changed while it was read\n");
}

}  // namespace
}  // namespace attnlab
