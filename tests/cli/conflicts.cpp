// What is asked for and cannot be had is refused, never ignored.

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

TEST_CASE("two results for one file are refused, however its path is written") {
  const TemporaryFolder folder;
  const std::string a = folder / "a.npy";
  const std::string again = (folder.path() / "." / "a.npy").string();
  check_refused({"attend", "--n", "2", "--save", "output=" + a, "--save", "q=" + again},
                {"save", "nothing else is written to"});
  check_refused({"attend", "--n", "2", "--save", "output=a.json", "--output", "./a.json"},
                {"save", "nothing else is written to"}, {.folder = folder.path()});
  CHECK(folder.names().empty());
}

TEST_CASE("given weights take no option of what computes them") {
  const TemporaryFolder folder;
  const std::string w = folder.write("w.csv", "0.5,0.5\n");
  check_refused({"weights", w, "--causal"}, {"causal", "these are given"});
  check_refused({"weights", w, "--scale", "3"}, {"scale", "these are given"});
  check_refused({"weights", w, "--heads", "2"}, {"heads", "these are given"});
  check_refused({"weights", w, "--mask", "no.npy"}, {"mask", "these are given"});
  check_refused({"weights", "--projections", "--top", "2"}, {"top", "projections"});
}

TEST_CASE("options without what they belong to are refused") {
  check_refused({"attend", "--offset", "3"}, {"offset", "causal"});
  check_refused({"multihead", "--prefix", "layer."}, {"prefix", "params"});
  check_refused({"multihead", "--params-layout", "torch"}, {"params-layout", "params"});
  check_refused({"multihead", "--save-params", "layer.npy"}, {"save-params", ".safetensors"});
  check_refused({"multihead", "--std", "1"}, {"std", "normal"});
  const TemporaryFolder folder;
  const std::string w = folder.write("w.csv", "1\n");
  check_refused({"compare", w, w, "--trace"}, {"trace", "no matrices"});
  check_refused({"compare", w, w, "--show", "q"}, {"show", "no matrices"});
}

TEST_CASE("a device without an end is refused at once") {
  check_refused({"softmax", "--x", "/dev/zero"}, {"/dev/zero", "device"});
}

TEST_CASE("an error in one of several configs says which") {
  const TemporaryFolder folder;
  const std::string good = folder.write("good.json", R"({"command": "attend"})");
  const std::string bad = folder.write("bad.json", R"({"command": "compare", "a": [[1]]})");
  check_refused({"run", good, bad}, {"bad.json", "b: is needed"});
  check_refused({"run", folder.write("none.json", "[]")}, {"none.json", "at least one"});
}

TEST_CASE("tokens cannot steer the terminal") {
  const Outcome outcome =
      attnlab({"weights", "--n", "2", "--top", "1", "--tokens", "x\x1b]0;title\x07 b\xE2\x80\xAEz"},
              {.environment = {{"NO_COLOR", "1"}}, .terminal_columns = 100});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find('\x1b') == std::string::npos);
  CHECK(outcome.out.find('\x07') == std::string::npos);
  CHECK(outcome.out.find("\xE2\x80\xAE") == std::string::npos);
}

TEST_CASE("a non-finite output is said") {
  const auto json = result_of_run({"attend", "--config", "-"}, {.stdin_text = R"(
      {"q": [[1e200]], "k": [[1e200]], "v": [[1]]})"});
  CHECK(json["notes"].dump().find("1 of 1 values are NaN") != std::string::npos);
}

TEST_CASE("a softmax of no rows has steps and no numbers to work out") {
  const TemporaryFolder folder;
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4), }";
  header.resize(117, ' ');
  const std::string file =
      folder.write("empty.npy", std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n");
  const Outcome outcome = attnlab({"softmax", "--x", file, "--trace"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("s_0") == std::string::npos);
}

}  // namespace
}  // namespace attnlab
