#include "command.h"

#include "app/described.h"
#include "attnlab/io/json.h"
#include "catch.h"
#include "run_configs.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Strings = std::vector<std::string>;

// A command that multiplies.
struct TimesOptions {
  double a = 2;
  double b = 3;
  Index threads = 0;
  TensorSource tensor;

  static constexpr auto fields() {
    using O = TimesOptions;
    return std::tuple(field("a", &O::a, "first factor", {.range = at_least(0.0)}),
                      field("b", &O::b, "second factor"),
                      field("threads", &O::threads, "threads", {.echo = false}),
                      field("tensor", &O::tensor, "unused file"));
  }
};

struct TimesResult {
  double product = 0;
  std::optional<AnyTensor> factors, never;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using R = TimesResult;
    return std::tuple(field("product", &R::product, "a b"),
                      field("factors", &R::factors, "both", {.shape = "[n]"}),
                      field("never", &R::never, "needs the impossible"));
  }
};

int computed = 0;  // calls of times()

TimesResult times(const TimesOptions& options, const Request& want) {
  ++computed;
  if (options.b == 13) throw InputError("", "b", "13", "need luck");
  TimesResult result;
  result.product = options.a * options.b;
  if (want.has("factors")) result.factors = Tensor<double>({2}, {options.a, options.b});
  result.notes = {"multiplied"};
  return result;
}

std::optional<std::string> product_line(const TimesOptions& options, const TimesResult& result,
                                        const std::vector<std::string>& shown, const Style&) {
  if (!shown.empty()) return std::nullopt;
  return std::to_string(options.a) + " -> " + std::to_string(result.product) + "\n";
}
std::vector<std::string> factors_of_one(const TimesOptions& options) {
  if (options.a == 1) return {"factors"};
  return {};
}
int is_odd(const TimesResult& result) { return static_cast<int>(result.product) % 2; }

std::vector<Command> test_commands() {
  return {make_command("times", "multiplies", "  times --a 1", times),
          make_command("odd", "has hooks", "", times,
                       {.also_shown = factors_of_one, .table = product_line, .exit_code = is_odd}),
          run_configs_command()};
}

struct Ran {
  int exit_code = 0;
  std::string error;
};

// As main does it.
Ran ran(const Strings& arguments) {
  Origins origins;
  computed = 0;
  try {
    return {run_command_line(test_commands(), arguments, origins), ""};
  } catch (const InputError& error) {
    return {2, origins.located(error).what()};
  }
}

TEST_CASE("a command runs its library function and renders the result") {
  const TemporaryFolder folder;
  CHECK(ran({"times", "--a", "4", "--output", folder / "r.json"}).exit_code == 0);
  const Json result = parse_json(folder.read("r.json"), "r.json");
  CHECK(result["command"] == "times");
  CHECK(result["result"]["product"] == 12);
  CHECK(result["options"]["a"] == 4);
  CHECK_FALSE(result["options"].contains("threads"));
  CHECK(result["notes"][0] == "multiplied");
}

TEST_CASE("a result runs again as a config") {
  const TemporaryFolder folder;
  CHECK(ran({"times", "--a", "4", "--save", "factors=" + (folder / "f.csv"), "--output",
             folder / "first.json"})
            .error == "");
  CHECK(ran({"run", folder / "first.json", "--output", folder / "second.json"}).error == "");
  CHECK(folder.read("first.json") == folder.read("second.json"));
  CHECK(ran({"times", "--config", folder / "first.json", "--a", "5", "--output",
             folder / "third.json"})
            .error == "");
  CHECK(parse_json(folder.read("third.json"), "")["result"]["product"] == 15);
}

TEST_CASE("hooks give a command its own table and exit code") {
  const TemporaryFolder folder;
  CHECK(ran({"odd", "--a", "5", "--quiet", "--output", folder / "t.txt"}).exit_code == 1);
  CHECK(folder.read("t.txt") == "5.000000 -> 15.000000\n");
  CHECK(ran({"odd", "--a", "4", "--output", folder / "t.json"}).exit_code == 0);
}

TEST_CASE("options may ask for a matrix, which --show overrides") {
  const TemporaryFolder folder;
  const auto factors = [&](Strings arguments) {
    arguments.insert(arguments.begin(), {"odd", "--quiet", "--output", folder / "r.json"});
    CHECK(ran(arguments).error == "");
    return parse_json(folder.read("r.json"), "r.json")["result"].contains("factors");
  };
  CHECK(factors({"--a", "1"}));
  CHECK_FALSE(factors({"--a", "2"}));
  CHECK_FALSE(factors({"--a", "1", "--show", "none"}));
  CHECK(factors({"--a", "2", "--trace"}));
}

TEST_CASE("a matrix is saved when all has succeeded") {
  const TemporaryFolder folder;
  const std::string target = "factors=" + (folder / "f.csv");
  CHECK(ran({"times", "--save", target, "--output", folder / "r.txt", "--quiet"}).exit_code == 0);
  CHECK(folder.read("f.csv") == "2,3\n");
  std::filesystem::remove(folder / "f.csv");
  CHECK(ran({"times", "--b", "13", "--save", target}).error ==
        "command line: --b: got 13, need luck");
  CHECK_FALSE(folder.has("f.csv"));
}

TEST_CASE("what cannot be done is refused before computing") {
  const TemporaryFolder folder;
  const auto refused = [&](Strings arguments) {
    arguments.insert(arguments.begin(), "times");
    const Ran outcome = ran(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK(computed == 0);
    return outcome.error;
  };
  CHECK(refused({"--a", "-1"}) == "command line: --a: got -1, need at least 0");
  CHECK(refused({"--show", "factor"}) ==
        "command line: --show: got factor, need a matrix of this command, did you mean factors?");
  CHECK(refused({"--save", "factor=f.npy"}) ==
        "command line: --save: got factor, need a matrix of this command, did you mean factors?");
  CHECK(refused({"--save", "factors=f.xyz"}).find("command line: --save: ") == 0);
  CHECK(refused({"--save", "factors=" + (folder / "no/f.npy")}).find("--save: ") !=
        std::string::npos);
  CHECK(refused({"--output", folder / "no/r.json"}).find("--output: ") != std::string::npos);
  CHECK(refused({"--output", folder / "r.npy"}).find("command line: --output: ") == 0);
  CHECK(refused({"--show", "factors", "--format", "csv"}).find("--save") != std::string::npos);
  CHECK(refused({"--save", "factors=" + (folder / "f.npy"), "--save",
                 "never=" + (folder / "f.npy")}) == "command line: --save: got " +
                                                        (folder / "f.npy") +
                                                        ", need a file that nothing else is "
                                                        "written to");
  CHECK(refused({"--config", folder / "none.json"})
            .find("command line: --config: got " + (folder / "none.json")) == 0);
  CHECK(folder.names().empty());
}

TEST_CASE("a matrix that this result does not have is refused by name") {
  CHECK(ran({"times", "--show", "never"}).error ==
        "command line: --show: got never, is not part of this result (needs the impossible)");
  const TemporaryFolder folder;
  CHECK(ran({"times", "--save", "never=" + (folder / "n.npy")}).error ==
        "command line: --save: got never, is not part of this result (needs the impossible)");
  CHECK(folder.names().empty());
  CHECK(ran({"times", "--show", "all", "--output", folder / "r.json"}).exit_code == 0);
}

TEST_CASE("tokens must fit what is shown") {
  const TemporaryFolder folder;
  const Strings show = {"times", "--show", "factors", "--output", folder / "r.txt", "--tokens"};
  Strings fitting = show, other = show;
  fitting.push_back(" two  words ");
  other.push_back("one two three");
  CHECK(ran(fitting).error == "");
  CHECK(ran(other).error ==
        "command line: --tokens: got 3 words, need one for each row or column "
        "of what is shown");
}

TEST_CASE("the config of a command names no other command") {
  const TemporaryFolder folder;
  const std::string config = folder.write("c.json", R"({"command": "odd"})");
  CHECK(ran({"times", "--config", config}).error ==
        config + ": command: got odd, need times, the command it was given to");
}

TEST_CASE("unknown commands are told with the nearest one") {
  CHECK(ran({"tiems"}).error == "command line: got tiems, unknown command, did you mean times?");
  CHECK(ran({}).error == "command line: need a command, attnlab --help lists them");
}

TEST_CASE("several configs give one JSON array in their order") {
  const TemporaryFolder folder;
  const std::string one = folder.write("one.json", R"({"command": "times", "a": 1})");
  const std::string two = folder.write("two.json", R"([{"command": "odd", "a": 2},
                                                       {"command": "times", "a": 3}])");
  const Ran outcome = ran({"run", one, two, "--output", folder / "all.json"});
  CHECK(outcome.error == "");
  CHECK(outcome.exit_code == 0);
  const Json all = parse_json(folder.read("all.json"), "all.json");
  REQUIRE(all.is_array());
  REQUIRE(all.size() == 3);
  CHECK(all[0]["result"]["product"] == 3);
  CHECK(all[1]["command"] == "odd");
  CHECK(all[2]["options"]["a"] == 3);
  CHECK(ran({"run", one, "--output", folder / "single.json"}).exit_code == 0);
  CHECK(parse_json(folder.read("single.json"), "").is_object());
}

TEST_CASE("an array of results runs again") {
  const TemporaryFolder folder;
  const std::string one = folder.write("one.json", R"({"command": "times", "a": 1})");
  CHECK(ran({"run", one, one, "--output", folder / "all.json"}).error == "");
  CHECK(ran({"run", folder / "all.json", "--output", folder / "again.json"}).error == "");
  CHECK(folder.read("again.json") == folder.read("all.json"));
}

TEST_CASE("several tables stand under their titles, JSON lines and CSV are joined") {
  const TemporaryFolder folder;
  const std::string one = folder.write("one.json", R"({"command": "odd", "a": 5})");
  const std::string two = folder.write("two.json", R"({"command": "odd", "a": 2})");
  CHECK(ran({"run", one, two, "--quiet", "--output", folder / "t.txt"}).exit_code == 1);
  CHECK(folder.read("t.txt") == "# " + one + " (odd)\n5.000000 -> 15.000000\n\n# " + two +
                                    " (odd)\n2.000000 -> 6.000000\n");
  CHECK(ran({"run", one, two, "--quiet", "--output", folder / "t.csv"}).exit_code == 1);
  CHECK(folder.read("t.csv") == "product\n15\n6\n");
  CHECK(ran({"run", one, two, "--quiet", "--output", folder / "t.jsonl"}).exit_code == 1);
  CHECK(folder.read("t.jsonl") == "{\"product\": 15}\n{\"product\": 6}\n");
}

TEST_CASE("all configs are checked before the first is computed") {
  const TemporaryFolder folder;
  const std::string good = folder.write("good.json", R"({"command": "times"})");
  const std::string bad = folder.write("bad.json", R"({"command": "times", "a": -1})");
  CHECK(ran({"run", good, bad}).error == bad + ": a: got -1, need at least 0");
  CHECK(computed == 0);
  const std::string unlucky = folder.write("unlucky.json", R"({"command": "times", "b": 13})");
  CHECK(ran({"run", good, unlucky, "--output", folder / "r.json"}).error ==
        unlucky + ": b: got 13, need luck");
  CHECK_FALSE(folder.has("r.json"));
}

TEST_CASE("run refuses configs that it cannot run") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& json) {
    const std::string path = folder.write("c.json", json);
    const Ran outcome = ran({"run", path});
    CHECK(outcome.exit_code == 2);
    REQUIRE(outcome.error.find(path) == 0);
    return outcome.error.substr(path.size());
  };
  CHECK(refused(R"({"a": 1})") == ": command: is needed: the config does not say what to run");
  CHECK(refused(R"({"command": "run"})") == ": command: got run, cannot stand in a config");
  CHECK(refused(R"({"command": "tims"})") ==
        ": command: got tims, unknown command, did you mean times?");
  CHECK(refused(R"({"command": 5})") == ": command: got 5, need a command");
  CHECK(ran({"run"}).error == "command line: need a config to run");
  const std::string csv = folder.write("csv.json", R"({"command": "times", "format": "csv"})");
  const std::string json = folder.write("json.json", R"({"command": "times", "format": "json"})");
  CHECK(ran({"run", csv, json}).error ==
        json +
            ": format: got json, need one format for all results that go to the same place, csv "
            "comes first");
  const std::string odd = folder.write("odd.json", R"({"command": "odd", "format": "csv"})");
  CHECK(ran({"run", csv, odd}).error ==
        odd + ": format: got csv, need results of one command, which have the same columns");
}

TEST_CASE("standard input is read for one thing only") {
  const TemporaryFolder folder;
  const std::string one = folder.write("one.json", R"({"command": "times", "tensor": "-"})");
  CHECK(ran({"run", one, one}).error ==
        "standard input: can be read once, for one option or config");
  CHECK(computed == 0);
}

}  // namespace
}  // namespace attnlab
