// Runs that take long: rows as they come, Ctrl-C, going on, and shards.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Strings = std::vector<std::string>;

// The first point is done at once, the second takes far longer than the test.
const Strings kLong = {"variance", "--d-k", "1,16384", "--samples", "200000", "--threads", "2"};

Strings with(Strings arguments, const Strings& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// Waits until `test` holds, for a minute at most.
bool comes_true(const std::function<bool()>& test) {
  for (int i = 0; i < 6000; ++i) {
    if (test()) return true;
    pause(10);
  }
  return false;
}

// The one file in the folder that is not `name`.
std::string temporary_beside(const TemporaryFolder& folder, const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename() != name) return entry.path().string();
  }
  return "";
}

const std::string kInterrupted =
    "attnlab: interrupted: the rows that were done are kept; --resume goes on from those of "
    "--format jsonl\n";

TEST_CASE("rows arrive on standard output before the run has ended") {
  Running run(with(kLong, {"--format", "jsonl"}));
  // Two scalings, two rows.
  REQUIRE(run.shows("inv_sqrt_d"));
  CHECK(run.runs());
  run.send(SIGINT);
  const Outcome outcome = run.finish();
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.err == kInterrupted);
  std::istringstream lines(outcome.out);
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["scaling"] == "none");
  CHECK(rows[1]["scaling"] == "inv_sqrt_d");
  CHECK(rows[2]["interrupted"] == true);
  CHECK(rows[2]["rows"] == 2);
  CHECK(rows[2]["run"] == rows[0]["run"]);
}

TEST_CASE("Ctrl-C keeps the finished points of a JSON result and marks it") {
  const TemporaryFolder folder;
  const std::string target = folder.write("r.json", "old");
  // Nothing tells from outside when the first point is done: it takes no time, the second minutes.
  Running run({"variance", "--d-k", "1,16777216", "--samples", "200", "--output", target});
  pause(2000);
  REQUIRE(run.runs());
  CHECK(folder.read("r.json") == "old");
  run.send(SIGINT);
  const Outcome outcome = run.finish();
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.err.ends_with(kInterrupted));
  const auto json = nlohmann::json::parse(folder.read("r.json"));
  CHECK(json["result"]["interrupted"] == true);
  REQUIRE(json["result"]["rows"].size() == 2);
  CHECK(json["result"]["rows"][0]["d_k"] == 1);
  CHECK(folder.names().size() == 1);
}

TEST_CASE("SIGTERM ends a run like Ctrl-C, with its own exit code") {
  Running run(with(kLong, {"--format", "jsonl"}));
  REQUIRE(run.shows("inv_sqrt_d"));
  run.send(SIGTERM);
  CHECK(run.finish().exit_code == 143);
  CHECK(run.output().find("\"interrupted\": true") != std::string::npos);
}

TEST_CASE("the target of a run is old or complete, never half") {
  const TemporaryFolder folder;
  const std::string target = folder.write("rows.jsonl", "old\n");
  Running run(with(kLong, {"--output", target}));
  // The first rows are in the temporary file.
  REQUIRE(comes_true([&] {
    const std::string temporary = temporary_beside(folder, "rows.jsonl");
    std::error_code error;
    return !temporary.empty() && std::filesystem::file_size(temporary, error) > 0 && !error;
  }));
  CHECK(folder.read("rows.jsonl") == "old\n");

  SECTION("Ctrl-C puts the finished rows there") {
    run.send(SIGINT);
    CHECK(run.finish().exit_code == 130);
    const std::string text = folder.read("rows.jsonl");
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(text.find("{\"interrupted\": true, \"rows\": 2") != std::string::npos);
    CHECK(text.back() == '\n');
    CHECK(folder.names().size() == 1);
  }
  SECTION("a kill leaves the old file") {
    run.send(SIGKILL);
    CHECK(run.finish().exit_code == 137);
    CHECK(folder.read("rows.jsonl") == "old\n");
  }
}

TEST_CASE("a second Ctrl-C ends a run that does not come to its end") {
  const TemporaryFolder folder;
  const std::string target = folder.write("rows.jsonl", "old\n");
  // A first pair that takes far longer than the pauses: only between pairs is a run stopped.
  Running run({"variance", "--d-k", "16777216", "--projection", "free", "--d-model", "16777216",
               "--positions", "different", "--samples", "64", "--threads", "1", "--output",
               target});
  REQUIRE(comes_true([&] { return folder.names().size() == 2; }));
  pause(100);
  run.send(SIGINT);
  pause(20);
  run.send(SIGINT);
  CHECK(run.finish().exit_code == 130);
  CHECK(folder.read("rows.jsonl") == "old\n");
}

TEST_CASE("an interrupted run goes on to the bytes of one that was not") {
  const TemporaryFolder folder;
  const Strings options = {"variance", "--d-k", "1,4,16", "--samples", "300"};
  REQUIRE(attnlab(with(options, {"--output", folder / "whole.jsonl"})).exit_code == 0);
  const std::string whole = folder.read("whole.jsonl");
  // Cut anywhere: in a point, in a line, at the end, or with the mark of an interruption.
  const std::size_t second = whole.find("\"d_k\": 4");
  for (const std::size_t length : {std::size_t{0}, second + 50, second + 5, whole.size()}) {
    folder.write("part.jsonl", whole.substr(0, length));
    // The file it goes on from may be the one it writes.
    const std::string part = folder / "part.jsonl";
    const Outcome outcome = attnlab(with(options, {"--resume", part, "--output", part}));
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.find("interrupted") == std::string::npos);
    CHECK(folder.read("part.jsonl") == whole);
  }
  const std::string run = nlohmann::json::parse(whole.substr(0, whole.find('\n')))["run"];
  const std::string marked = folder.write(
      "marked.jsonl", whole.substr(0, whole.find("{\"d_k\": 16")) +
                          "{\"interrupted\": true, \"rows\": 4, \"run\": \"" + run + "\"}\n");
  CHECK(attnlab(with(options, {"--resume", marked, "--format", "jsonl"})).out == whole);
  // Every format comes out as if the run had never stopped.
  const Outcome json = attnlab(with(options, {"--format", "json"}));
  CHECK(attnlab(with(options, {"--resume", marked, "--format", "json"})).out == json.out);
}

TEST_CASE("a run does not go on from the rows of other options") {
  const TemporaryFolder folder;
  const std::string rows = folder / "rows.jsonl";
  REQUIRE(attnlab({"variance", "--d-k", "1,4", "--samples", "300", "--output", rows}).exit_code ==
          0);
  check_refused({"variance", "--d-k", "1,4", "--samples", "300", "--seed", "1", "--resume", rows},
                {rows + ": line 1: run: is not of this run"});
  check_refused({"variance", "--d-k", "1,4", "--samples", "301", "--resume", rows}, {"line 1"});
  check_refused({"saturation", "--d-k", "1,4", "--samples", "300", "--resume", rows}, {"line 1"});
  // What does not change a result does not matter.
  CHECK(
      attnlab({"variance", "--d-k", "1,4", "--samples", "300", "--threads", "1", "--resume", rows})
          .exit_code == 0);
  check_refused({"variance", "--resume", folder / "none.jsonl"}, {"--resume: got", "none.jsonl"});
  check_refused({"variance", "--resume", rows, "--shard", "1/2", "--format", "json"},
                {"--resume: ", "cannot go with shard"});
}

TEST_CASE("the parts of every experiment merge to the bytes of one run") {
  const std::vector<Strings> runs = {
      {"variance", "--d-k", "1,4", "--samples", "500"},
      {"variance", "--d-k", "3", "--samples", "500", "--components"},
      {"variance", "--d-k", "3", "--samples", "250", "--sampling", "pairs"},
      {"variance", "--d-k", "3", "--samples", "500", "--distribution", "student_t", "--nu", "3"},
      {"saturation", "--d-k", "64", "--keys", "8", "--samples", "300", "--quantiles", ".1,.9"},
      {"saturation", "--d-k", "64", "--keys", "8", "--samples", "300", "--key-draw", "reuse"},
      {"saturation", "--logits", "iid", "--keys", "8", "--samples", "300"},
      {"gradients", "--d-k", "4", "--keys", "8", "--samples", "300"}};
  for (const Strings& run : runs) {
    const TemporaryFolder folder;
    INFO(run[0] << " " << run.back());
    Strings merge = {"merge"};
    for (const std::string part : {"3/3", "1/3", "2/3"}) {
      const std::string path = folder / (part.substr(0, 1) + ".json");
      REQUIRE(attnlab(with(run, {"--shard", part, "--output", path})).exit_code == 0);
      merge.push_back(path);
    }
    for (const char* format : {"json", "jsonl", "csv", "table"}) {
      const Outcome whole = attnlab(with(run, {"--format", format}));
      const Outcome merged = attnlab(with(merge, {"--format", format}));
      CHECK(merged.exit_code == 0);
      CHECK(merged.out == whole.out);
      CHECK(merged.err == whole.err);
    }
  }
}

TEST_CASE("what cannot be done is refused before the long part") {
  const Strings endless = {"variance", "--d-k", "1048576", "--samples", "1000000"};
  check_refused({"variance", "--samples", "1"}, {"--samples: got 1, need at least 2"});
  check_refused({"saturation", "--samples", "1"}, {"--samples: got 1, need at least 2"});
  check_refused({"gradients", "--samples", "0"}, {"--samples: got 0, need at least 2"});
  check_refused(with(endless, {"--output", "/nowhere/r.json"}), {"--output: got /nowhere/r.json"});
  check_refused(with(endless, {"--output", "/nowhere/r.jsonl"}),
                {"--output: got /nowhere/r.jsonl"});
  check_refused(with(endless, {"--shard", "1/2"}), {"--shard: got 1/2, needs --format json"});
  check_refused(with(endless, {"--shard", "3/2", "--format", "json"}), {"--shard: got 3/2"});
  check_refused(with(endless, {"--scaling", "root"}), {"--scaling: got root"});
}

TEST_CASE("rows that cannot be written end the run") {
  const Outcome outcome =
      attnlab({"variance", "--d-k", "1,4", "--samples", "100", "--format", "jsonl"},
              {.stdout_path = "/dev/full"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.find("No space left") != std::string::npos);
}

const std::string kCleared = "\r\033[K";

TEST_CASE("progress is told to a terminal and to nothing else") {
  Running watched(kLong, {.terminal_columns = 80});
  CHECK(watched.shows("%, about "));
  watched.send(SIGINT);
  CHECK(watched.finish().exit_code == 130);
  // The line is gone before other text comes.
  const std::string& out = watched.output();
  CHECK(out.compare(out.rfind(" left") + 5, kCleared.size(), kCleared) == 0);

  // A point that is long enough for progress, then its rows.
  Running rows({"variance", "--d-k", "1024,65536", "--samples", "30000", "--threads", "1",
                "--format", "jsonl"},
               {.terminal_columns = 80});
  REQUIRE(rows.shows("{\"d_k\""));
  const std::size_t row = rows.output().find("{\"d_k\"");
  CHECK((row == 0 || rows.output().substr(0, row).ends_with(kCleared)));

  Running quiet(with(kLong, {"--quiet"}), {.terminal_columns = 80});
  pause(1500);
  quiet.send(SIGINT);
  CHECK(quiet.finish().out.find("%, about ") == std::string::npos);

  Running piped(with(kLong, {"--format", "jsonl"}));
  REQUIRE(piped.shows("inv_sqrt_d"));
  pause(1500);
  piped.send(SIGINT);
  CHECK(piped.finish().err == kInterrupted);
}

}  // namespace
}  // namespace attnlab
