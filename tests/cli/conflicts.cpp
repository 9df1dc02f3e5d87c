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

TEST_CASE("weights need queries and keys, and no values") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  folder.write("q.csv", "1,0\n0,1\n");
  folder.write("k.csv", "1,0\n0,1\n1,1\n");
  const std::string k = folder.read("k.csv");
  const auto files = result_of_run({"weights", "--q", "q.csv", "--k", "k.csv"}, here);
  const auto piped = result_of_run({"weights", "--q", "q.csv", "--k", "-"},
                                   {.stdin_text = k, .folder = folder.path()});
  CHECK(piped["result"] == files["result"]);
  check_refused({"weights", "--q", "q.csv"}, {"--k: is needed: give q and k"}, here);
  check_refused({"weights", "--k", "k.csv"}, {"--q: is needed: give q and k"}, here);
  const Outcome drawn = attnlab({"weights", "--n", "2"});
  CHECK(drawn.err.find("q [2, 8] and k [2, 8] are standard normal") != std::string::npos);
  const Outcome overflow =
      attnlab({"weights", "--config", "-"}, {.stdin_text = R"({"q": [[1]], "k": [["NaN"]]})"});
  CHECK(overflow.err.find("output") == std::string::npos);
}

TEST_CASE("standard input is read once, for parameters too") {
  check_refused({"multihead", "--params", "-", "--x", "-"}, {"standard input", "once"});
  check_refused({"multihead", "--config", "-", "--params", "-"}, {"standard input", "once"},
                {.stdin_text = "{}"});
}

TEST_CASE("weights refuse options of a layer where there is none") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  folder.write("w.csv", "0.5,0.5\n");
  folder.write("q.csv", "1,2\n");
  const std::vector<std::vector<std::string>> layer = {{"--save-params", "P.safetensors"},
                                                       {"--bias"},
                                                       {"--init", "normal"},
                                                       {"--std", "1"},
                                                       {"--prefix", "layer."},
                                                       {"--params-layout", "torch"}};
  for (const std::vector<std::vector<std::string>>& sources :
       {std::vector<std::vector<std::string>>{{"w.csv"}, {"--q", "q.csv", "--k", "q.csv"}}}) {
    for (const std::vector<std::string>& source : sources) {
      for (const std::vector<std::string>& option : layer) {
        std::vector<std::string> arguments = {"weights"};
        arguments.insert(arguments.end(), source.begin(), source.end());
        arguments.insert(arguments.end(), option.begin(), option.end());
        INFO(source[0] << " " << option[0]);
        check_refused(arguments, {option[0]}, here);
      }
    }
  }
  CHECK_FALSE(folder.has("P.safetensors"));
}

TEST_CASE("projections take no option of scores or masks") {
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--causal"},
                                                 {"--softcap", "3"},
                                                 {"--scale", "2"},
                                                 {"--key-lengths", "3"},
                                                 {"--window-left", "1"},
                                                 {"--dropout", "0.5"}}) {
    std::vector<std::string> arguments = {"weights", "--projections"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    INFO(option[0]);
    check_refused(arguments, {option[0], "projections"});
  }
}

TEST_CASE("what would change nothing is refused") {
  check_refused({"softmax", "1", "2", "--method", "stable,naive", "--trace"},
                {"--trace", "no matrices"});
  check_refused({"softmax", "1", "2", "--method", "stable,naive", "--tokens", "a b"},
                {"--tokens", "a b"});
  check_refused({"multihead", "--role", "decoder", "--causal=false"}, {"--causal", "decoder"});
  check_refused({"attend", "--show", "none,weights"}, {"--show", "none"});
  check_refused({"--help", "attend"}, {"attend"});
  check_refused({"--version", "x"}, {"x"});
}

TEST_CASE("a role other than decoder takes causal as it is") {
  CHECK(attnlab({"multihead", "--role", "decoder", "--causal"}).exit_code == 0);
  CHECK(attnlab({"multihead", "--role", "encoder", "--causal=false"}).exit_code == 0);
  CHECK(attnlab({"multihead", "--causal=false"}).exit_code == 0);
}

TEST_CASE("a result as a config holds nothing beside what results hold") {
  const std::string start = R"({"version": "0.1.0", "options": {"n": 3}, )";
  check_refused({"attend", "--config", "-"}, {"standard input: n"},
                {.stdin_text = start + R"("n": 5})"});
  CHECK(attnlab({"attend", "--config", "-"},
                {.stdin_text = start + R"("command": "attend", "notes": [], "result": {},
                                          "$schema": "attend.schema.json"})"})
            .exit_code == 0);
}

TEST_CASE("weights and roles walk through no steps and say so") {
  check_refused({"weights", "--n", "2", "--trace"}, {"--trace", "attend --trace"});
  check_refused({"roles", "--trace"}, {"--trace", "multihead --trace"});
}

}  // namespace
}  // namespace attnlab
