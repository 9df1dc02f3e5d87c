// variance, saturation and gradients as a user runs them.

#include <sstream>

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Strings = std::vector<std::string>;

Strings with(Strings arguments, const Strings& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("T39 an experiment gives the same bytes with 1, 2 and 8 threads") {
  for (const Strings& run : {Strings{"variance", "--d-k", "1,16,64", "--samples", "1000"},
                             Strings{"variance", "--d-k", "5", "--samples", "300", "--components"},
                             Strings{"saturation", "--d-k", "64", "--samples", "300"},
                             Strings{"gradients", "--d-k", "64", "--samples", "300"}}) {
    for (const char* format : {"json", "jsonl"}) {
      const Strings seeded = with(run, {"--seed", "1", "--format", format, "--threads"});
      const Outcome one = attnlab(with(seeded, {"1"}));
      REQUIRE(one.exit_code == 0);
      CHECK(attnlab(with(seeded, {"2"})).out == one.out);
      CHECK(attnlab(with(seeded, {"8"})).out == one.out);
      Strings other = seeded;
      other[run.size() + 1] = "2";
      CHECK(attnlab(with(other, {"1"})).out != one.out);
    }
  }
}

TEST_CASE("the result of an experiment is a config that gives it again") {
  const TemporaryFolder folder;
  for (const char* command : {"variance", "saturation", "gradients"}) {
    const Outcome first =
        attnlab({command, "--d-k", "16", "--samples", "200", "--seed", "18446744073709551615",
                 "--confidence", "0.9", "--format", "json"});
    REQUIRE(first.exit_code == 0);
    const std::string result = folder.write("result.json", first.out);
    CHECK(attnlab({"run", result, "--format", "json"}).out == first.out);
    // What says only how it was run is not part of it.
    const auto options = nlohmann::json::parse(first.out)["options"];
    for (const char* name : {"threads", "shard", "resume", "format"}) {
      CHECK_FALSE(options.contains(name));
    }
  }
}

TEST_CASE("the defaults of variance tell the story of the seed: 256 and 16") {
  const Outcome table = attnlab({"variance"});
  CHECK(table.exit_code == 0);
  // The last line is one sentence.
  const std::string last = table.out.substr(table.out.rfind('\n', table.out.size() - 2) + 1);
  CHECK(table.out.find("The variance of q.k grows as d_k^") != std::string::npos);
  CHECK(last.ends_with("hold the theory.\n"));
  const auto result = result_of_run({"variance"});
  bool found = false;
  for (const auto& row : result["result"]["rows"]) {
    if (row["d_k"] != 256 || row["scaling"] != "none") continue;
    found = true;
    CHECK(row["theory_variance"] == 256);
    CHECK(row["alpha"] == 16);
    // 4.5 standard errors: one false alarm in 150000.
    CHECK(std::abs(row["z"].get<double>()) < 4.5);
  }
  CHECK(found);
}

TEST_CASE("T36 what is undefined is null, an empty cell or a dash, never 0") {
  const Strings run = {"variance", "--d-k",          "4",         "--samples", "100", "--scaling",
                       "none",     "--distribution", "student_t", "--nu",      "2"};
  const auto row = result_of_run(run)["result"]["rows"][0];
  const Strings undefined = {"std_error", "ci_low", "ci_high", "theory_variance",
                             "ratio",     "z",      "alpha",   "component_variance_sum"};
  for (const std::string& name : undefined) {
    INFO(name);
    CHECK(row.at(name).is_null());
  }
  CHECK(row["interquartile_range"].is_number());

  std::istringstream csv(attnlab(with(run, {"--format", "csv", "--quiet"})).out);
  std::string names, cells;
  std::getline(csv, names);
  std::getline(csv, cells);
  const auto split = [](const std::string& line) {
    Strings parts;
    std::istringstream stream(line);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
  };
  const Strings header = split(names), values = split(cells);
  for (const std::string& name : undefined) {
    const auto at = std::find(header.begin(), header.end(), name) - header.begin();
    REQUIRE(at < std::ssize(values));
    CHECK(values[static_cast<std::size_t>(at)].empty());
  }
  const Outcome table = attnlab(run);
  CHECK(table.out.find(" -") != std::string::npos);
  CHECK(table.out.find("interval not valid: the fourth moment of the score is infinite") +
            table.err.find("interval not valid: the fourth moment of the score is infinite") !=
        2 * std::string::npos);
}

TEST_CASE("refusals of an experiment name the option and where it came from") {
  check_refused({"variance", "--mean-q", "1", "--sampling", "pairs"},
                {"command line: --mean-q: ", "cannot go with sampling pairs"});
  check_refused({"saturation", "--logit-variance", "2"}, {"command line: --logit-variance: got 2"});
  check_refused({"gradients", "--scaling", "softcap:3"},
                {"command line: --scaling: got softcap:3"});
  check_refused({"variance", "--rho-q", "2"}, {"command line: --rho-q: got 2"});
  check_refused({"saturation", "--near-zero", "0"}, {"command line: --near-zero: got 0"});
  check_refused({"saturation", "--quantiles", "1.5"}, {"command line: --quantiles: got 1.5"});
  check_refused({"saturation", "--keys", "0"}, {"command line: --keys: got 0"});
  check_refused({"variance", "--confidence", "1"}, {"command line: --confidence: got 1"});
  const TemporaryFolder folder;
  const std::string config =
      folder.write("c.json", R"({"command": "variance", "samples": 1, "d_k": [4]})");
  check_refused({"run", config}, {config + ": samples: got 1, need at least 2"});
}

}  // namespace
}  // namespace attnlab
