// bench as a user runs it: the one command whose numbers differ from run to run.

#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Strings = std::vector<std::string>;

const Strings kSmall = {"bench", "--d-k", "4", "--heads", "2", "--repeat", "2", "--min-time", "0"};

Strings with(Strings arguments, const Strings& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const Strings kQuick = with(kSmall, {"--n", "16,32", "--threads", "1"});

const Strings kColumns = {"operation",
                          "n",
                          "d_k",
                          "heads",
                          "causal",
                          "weights",
                          "threads",
                          "kernel",
                          "buffers",
                          "calls",
                          "median_ms",
                          "p25_ms",
                          "p75_ms",
                          "best_ms",
                          "speedup",
                          "gflops",
                          "peak_gflops",
                          "peak_share",
                          "values_per_second",
                          "peak_memory_mib"};

Strings keys_of(const nlohmann::ordered_json& object) {
  Strings keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

TEST_CASE("bench gives one row a size, with every column in each format") {
  const auto result = result_of_run(kQuick);
  const auto& rows = result["result"]["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["n"] == 16);
  CHECK(rows[1]["n"] == 32);
  for (const auto& row : rows) {
    CHECK(keys_of(row) == kColumns);
    CHECK(row["kernel"] == "auto");
    CHECK(row["causal"] == false);
    CHECK(row["weights"] == false);
    CHECK(row["median_ms"].get<double>() > 0);
  }
  CHECK(result["result"]["interrupted"] == false);
  CHECK(result["result"]["finding"].get<std::string>().rfind("At n 32 and d_k 4 ", 0) == 0);

  std::istringstream csv(attnlab(with(kQuick, {"--format", "csv"})).out);
  std::string header;
  std::getline(csv, header);
  std::string expected;
  for (const std::string& name : kColumns) expected += (expected.empty() ? "" : ",") + name;
  CHECK(header.rfind(expected, 0) == 0);

  std::istringstream lines(attnlab(with(kQuick, {"--format", "jsonl"})).out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto row = nlohmann::ordered_json::parse(line);
    for (const std::string& name : kColumns) CHECK(row.contains(name));
  }
  CHECK(count == 2);
}

TEST_CASE("the table of bench names the operation where it is not attention alone") {
  const std::string attention = attnlab(kQuick).out;
  CHECK(attention.rfind(" n  d_k  kernel  weights  median_ms", 0) == 0);
  CHECK(attention.find("peak_memory_mib") != std::string::npos);
  CHECK(attention.find("\nAt n 32 and d_k 4 attention of 2 heads takes ") != std::string::npos);
  const std::string both = attnlab(with(kQuick, {"--operation", "attention,backward"})).out;
  CHECK(both.rfind("operation   n  d_k  kernel  weights", 0) == 0);
}

// The names above the table of a run, of its first block if it has several.
Strings heads_of_table(const Strings& more) {
  std::istringstream header(attnlab(with(kSmall, with({"--n", "16"}, more))).out);
  std::string line, name;
  std::getline(header, line);
  std::istringstream words(line);
  Strings names;
  while (words >> name) names.push_back(name);
  return names;
}

TEST_CASE("the table of bench has columns for what was asked for beyond the usual") {
  CHECK(heads_of_table({"--threads", "1,2"}) == Strings{"n", "d_k", "kernel", "weights", "threads",
                                                        "median_ms", "best_ms", "speedup",
                                                        "gflops"});
  CHECK(heads_of_table({"--buffers", "fresh,warm"}) == Strings{"n", "d_k", "kernel", "weights",
                                                               "buffers", "median_ms", "best_ms",
                                                               "gflops", "peak_share"});
  CHECK(heads_of_table({"--operation", "normals"}) == Strings{"operation", "n", "d_k", "median_ms",
                                                              "best_ms", "values_per_second",
                                                              "peak_memory_mib"});
  CHECK(heads_of_table({"--operation", "normals,attention"}) ==
        Strings{"operation", "n", "d_k", "kernel", "weights", "median_ms", "best_ms", "gflops",
                "peak_share"});
  const std::string normals =
      attnlab(with(kSmall, {"--n", "16", "--threads", "1", "--operation", "normals"})).out;
  CHECK(normals.find("\n128 normals take ") != std::string::npos);
}

TEST_CASE("a result of bench is a config of the same run, threads included") {
  const TemporaryFolder folder;
  const auto first =
      result_of_run(with(kQuick, {"--causal", "--weights", "--seed", "5", "--buffers", "warm"}));
  CHECK(first["options"]["threads"].dump() == "[1]");
  CHECK(first["options"]["buffers"].dump() == R"(["warm"])");
  CHECK(first["options"]["causal"] == true);
  CHECK(first["options"]["weights"] == true);
  const auto again = result_of_run({"run", folder.write("result.json", first.dump())});
  CHECK(again["options"] == first["options"]);
  for (const auto& row : again["result"]["rows"]) {
    CHECK(row["causal"] == true);
    CHECK(row["weights"] == true);
    CHECK(row["threads"] == 1);
    CHECK(row["buffers"] == "warm");
  }
}

TEST_CASE("refusals of bench name the option and where it came from") {
  check_refused({"bench", "--n", "0"}, {"command line: --n: got 0"});
  check_refused({"bench", "--n", "16777216", "--weights"},
                {"command line: --n: got 16777216, needs ", " of memory"});
  check_refused({"bench", "--kernel", "fast"}, {"--kernel: got fast"});
  check_refused({"bench", "--operation", "backward", "--weights"},
                {"command line: --weights: got true, cannot go with operation backward"});
  check_refused({"bench", "--buffers", "cold"}, {"--buffers: got cold, need fresh or warm"});
  check_refused({"bench", "--operation", "normals", "--causal"},
                {"command line: --causal: got true, cannot go with operation normals"});
  check_refused({"bench", "--threads", "1,1025"}, {"command line: --threads: got 1025"});
  check_refused({"bench", "--resume", "rows.jsonl"}, {"--resume"});
  const TemporaryFolder folder;
  const std::string config = folder.write("c.json", R"({"command": "bench", "repeat": 0})");
  check_refused({"run", config}, {config + ": repeat: got 0"});
}

TEST_CASE("Ctrl-C keeps the finished rows of bench, which has nothing to go on from") {
  Running run({"bench", "--n", "16", "--d-k", "4,8", "--repeat", "30000", "--min-time", "0",
               "--threads", "1", "--format", "jsonl"});
  // The first row takes half a minute.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  REQUIRE(run.runs());
  run.send(SIGINT);
  const Outcome outcome = run.finish();
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.err == "attnlab: interrupted: the rows that were done are kept\n");
  const auto mark = nlohmann::json::parse(outcome.out);
  CHECK(mark["interrupted"] == true);
  CHECK(mark["rows"] == 0);
}

}  // namespace
}  // namespace attnlab
