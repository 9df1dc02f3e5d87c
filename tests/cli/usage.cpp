#include <string>

#include "catch.h"
#include "cli/run_binary.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Bad usage and bad input: exit 2, one line on standard error, nothing on standard output.
std::string refusal(const std::vector<std::string>& arguments,
                    const Surroundings& surroundings = {}) {
  const Outcome outcome = attnlab(arguments, surroundings);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out == "");
  CHECK(outcome.err.find("attnlab: ") == 0);
  CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  return outcome.err.substr(9, outcome.err.size() - 10);
}

TEST_CASE("help and version are on standard output and exit 0") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"--version"},
                                                    {"attend", "--help"},
                                                    {"run", "--help"},
                                                    {"schema", "--help"},
                                                    {"attend", "--n", "5", "--help"}}) {
    const Outcome outcome = attnlab(arguments);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out != "");
    CHECK(outcome.err == "");
  }
  CHECK(has(attnlab({"attend", "--help"}).out, "Examples:\n  attnlab attend "));
  CHECK(attnlab({"--version"}).out.find("attnlab ") == 0);
}

TEST_CASE("bad usage exits 2 with one clear line") {
  CHECK(refusal({}) == "command line: need a command, attnlab --help lists them");
  CHECK(refusal({"atend"}) == "command line: got atend, unknown command, did you mean attend?");
  CHECK(refusal({"attend", "--sclae", "1"}) ==
        "command line: --sclae: unknown option, did you mean --scale?");
  CHECK(refusal({"attend", "--n"}) == "command line: --n: needs a value: N");
  CHECK(refusal({"attend", "--n", "5", "--n", "6"}) == "command line: --n: got 6, given twice");
  CHECK(refusal({"attend", "stray"}) == "command line: got stray, unexpected argument");
  CHECK(refusal({"attend", "--causal=5"}) ==
        "command line: --causal: got 5, need no value: the flag alone, or =true or =false");
  CHECK(refusal({"attend", "--d-k", "0"}) == "command line: --d-k: got 0, need at least 1");
  CHECK(refusal({"attend", "--heads", "1.5"}) ==
        "command line: --heads: got 1.5, need an integer, at least 1");
  CHECK(refusal({"attend", "--scale", "nan"}) ==
        "command line: --scale: got nan, need auto, none or a number");
  CHECK(refusal({"schema"}) == "command line: need a command");
  CHECK(refusal({"schema", "run"}) == "command line: got run, has no config");
  CHECK(refusal({"attend\x1b[31m"}).find('\x1b') == std::string::npos);
}

TEST_CASE("negative numbers are values and impossible seeds are refused as values") {
  for (const std::vector<std::string>& scale :
       {std::vector<std::string>{"--scale", "-1"}, {"--scale=-1"}, {"--scale", "-1e0"}}) {
    std::vector<std::string> arguments = {"attend", "--quiet", "--format", "json"};
    arguments.insert(arguments.end(), scale.begin(), scale.end());
    const Outcome outcome = attnlab(arguments);
    CHECK(outcome.exit_code == 0);
    CHECK((has(outcome.out, "\"scale\": -1,") || has(outcome.out, "\"scale\": -1.0,")));
  }
  const std::string rule = ", need an integer, 0 to 18446744073709551615";
  for (const std::string seed : {"-1", "18446744073709551616", "1.5"}) {
    CHECK(refusal({"attend", "--seed", seed}) == "command line: --seed: got " + seed + rule);
  }
  for (const std::string seed : {"9007199254740993", "18446744073709551615", "1000000000000000"}) {
    CHECK(has(attnlab({"attend", "--seed", seed, "--format", "json"}).out, "\"seed\": " + seed));
  }
}

TEST_CASE("a flag goes before a config, a config before a default, and the result says which") {
  const TemporaryFolder folder;
  const std::string config =
      folder.write("c.json", R"({"command": "attend", "n": 3, "d_k": 2, "causal": true})");
  const Outcome outcome =
      attnlab({"attend", "--config", config, "--n", "4", "--causal=false", "--format", "json"});
  CHECK(outcome.exit_code == 0);
  CHECK(has(outcome.out, "\"n\": 4,"));
  CHECK(has(outcome.out, "\"d_k\": 2,"));
  CHECK(has(outcome.out, "\"causal\": false,"));
  CHECK(has(outcome.out, "\"dropout\": 0"));
  CHECK_FALSE(has(outcome.out, "\"threads\""));
  CHECK_FALSE(has(outcome.out, "\"format\""));
  const std::string wrong = folder.write("wrong.json", R"({"sclae": 0.5})");
  CHECK(refusal({"attend", "--config", wrong}) ==
        wrong + ": sclae: unknown option, did you mean scale?");
  CHECK(refusal({"attend", "--config", "-"}, {.stdin_text = R"({"n": -1})"}) ==
        "standard input: n: got -1, need at least 0");
}

TEST_CASE("a result runs again to the same bytes") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  CHECK(attnlab({"attend", "--n", "3", "--seed", "7", "--save", "weights=W.csv", "--output",
                 "first.json"},
                here)
            .exit_code == 0);
  CHECK(attnlab({"run", "first.json", "--output", "second.json"}, here).exit_code == 0);
  CHECK(folder.read("first.json") == folder.read("second.json"));
  CHECK(attnlab({"attend", "--config", "first.json", "--threads", "3", "--format", "json"}, here)
            .out == folder.read("first.json"));
}

TEST_CASE("with JSON standard output is JSON only and notes are in it") {
  const Outcome json = attnlab({"attend", "--format", "json"});
  CHECK(json.err == "");
  CHECK(json.out.front() == '{');
  CHECK(has(json.out, "drawn from seed"));
  const Outcome table = attnlab({"attend"});
  CHECK(table.err.find("attnlab: note: ") == 0);
  CHECK(attnlab({"attend", "--quiet"}).err == "");
}

TEST_CASE("a closed pipe ends the program silently") {
  const Outcome outcome = attnlab({"attend", "--quiet"}, {.closed_pipe = true});
  CHECK((outcome.exit_code == 141 || outcome.exit_code == 0));
  CHECK(outcome.err == "");
}

TEST_CASE("a full disk is an error") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"attend", "--quiet"}, {"--help"}, {"schema", "attend"}}) {
    const Outcome outcome = attnlab(arguments, {.stdout_path = "/dev/full"});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.err.find("attnlab: standard output: cannot be written") == 0);
  }
  CHECK(has(refusal({"attend", "--output", "/dev/full"}), "--output"));
}

TEST_CASE("nothing is left behind where the target cannot be written") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  CHECK(has(refusal({"attend", "--save", "output=no/such/Z.npy"}, here), "--save"));
  CHECK(has(refusal({"attend", "--output", "no/such/r.json"}, here), "--output"));
  CHECK(has(refusal({"attend", "--save", "output=Z.npy", "--q", "none.npy", "--k", "none.npy",
                     "--v", "none.npy"},
                    here),
            "none.npy"));
  CHECK(folder.names().empty());
}

TEST_CASE("colours are for terminals, and forced or forbidden") {
  const std::vector<std::string> arguments = {"attend", "--quiet", "--trace"};
  std::vector<std::string> always = arguments, never = arguments;
  always.insert(always.end(), {"--color", "always"});
  never.insert(never.end(), {"--color", "never"});
  CHECK_FALSE(has(attnlab(arguments).out, "\x1b"));
  CHECK_FALSE(has(attnlab(never, {.terminal_columns = 80}).out, "\x1b"));
  CHECK_FALSE(
      has(attnlab(arguments, {.environment = {{"NO_COLOR", "1"}}, .terminal_columns = 80}).out,
          "\x1b"));
  CHECK_FALSE(has(
      attnlab(arguments, {.environment = {{"TERM", "dumb"}}, .terminal_columns = 80}).out, "\x1b"));
}

TEST_CASE("the width is the terminal's, else that of COLUMNS, else 80") {
  const auto help = [](const Surroundings& surroundings) {
    return attnlab({"attend", "--help"}, surroundings).out;
  };
  const std::string usual = help({});
  for (const char* columns : {"0", "-5", "nonsense", "80", "99999999999999999999"}) {
    CHECK(help({.environment = {{"COLUMNS", columns}}}) == usual);
  }
  CHECK(help({.environment = {{"COLUMNS", "200"}}}).size() < usual.size());
  CHECK(help({.environment = {{"COLUMNS", "1"}}}) == help({.environment = {{"COLUMNS", "20"}}}));
  CHECK(help({.terminal_columns = 40}) != help({.terminal_columns = 120}));
  CHECK(attnlab({"attend", "--quiet"}, {.environment = {{"COLUMNS", "1"}}}).exit_code == 0);
}

TEST_CASE("the schema of a command is JSON on standard output") {
  const Outcome outcome = attnlab({"schema", "attend"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("{") == 0);
  CHECK(has(outcome.out, "\"https://json-schema.org/draft/2020-12/schema\""));
  CHECK(has(outcome.out, "\"key_lengths\""));
  CHECK(has(outcome.out, "\"const\": \"attend\""));
}

TEST_CASE("a table of nothing is nothing") {
  const Outcome outcome = attnlab({"roles", "--show", "none", "--quiet"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == "");
}

}  // namespace
}  // namespace attnlab
