// saturation of given weights, as a user runs it after multihead.

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

const std::vector<std::string> kLayer = {"multihead", "--n",     "6",        "--d-model", "8",
                                         "--heads",   "2",       "--causal", "--seed",    "3",
                                         "--show",    "weights", "--quiet"};

TEST_CASE("weights that multihead saved, wrote as JSON or pipes have the same saturation") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  std::vector<std::string> layer = kLayer;
  layer.insert(layer.end(), {"--format", "json", "--save", "weights=W.npy"});
  const Outcome weights = attnlab(layer, here);
  REQUIRE(weights.exit_code == 0);
  folder.write("layer.json", weights.out);
  const auto rows = [&](const std::string& source, const std::string& stdin_text = {}) {
    const Surroundings with{.stdin_text = stdin_text, .folder = folder.path()};
    return result_of_run({"saturation", "--weights", source}, with)["result"]["rows"];
  };
  const auto saved = rows("W.npy");
  REQUIRE(saved.size() == 2);
  CHECK(saved[1]["head"] == 1);
  CHECK(saved[1]["d_k"].is_null());
  CHECK(saved[1]["keys_seen"] == 3.5);
  CHECK(saved[1]["entropy_ci_low"].is_null());
  CHECK(saved[1]["naive_nan_share"].is_null());
  CHECK(saved[1]["entropy_theory"].is_number());
  CHECK(rows("layer.json:weights") == saved);
  CHECK(rows("-:weights", weights.out) == saved);
}

TEST_CASE("a table of heads sets their metrics beside those of random scores, then tells of them") {
  const std::string config = std::string(ATTNLAB_CONFIGS) + "/saturation_weights.json";
  const Outcome table = attnlab({"run", config});
  CHECK(table.exit_code == 0);
  for (const char* part :
       {"head", "keys_seen", "logit_variance", "max_p_theory", "entropy_theory", "effective_keys",
        "trace_theory", "Of 3 heads over 4 keys the most saturated is head 0"}) {
    CHECK(table.out.find(part) != std::string::npos);
  }
  for (const char* part : {"d_k", "scaling", "naive"}) {
    CHECK(table.out.find(part) == std::string::npos);
  }
  CHECK(table.err.find("note: 6 of 48 weights") != std::string::npos);
  CHECK(table.err.find("note: there are no intervals") != std::string::npos);
  // Nothing is masked in a single matrix without heads.
  const Outcome one =
      attnlab({"saturation", "--config", "-"}, {.stdin_text = R"({"weights": [[0.5, 0.5]]})"});
  CHECK(one.out.find("logit_variance") == 0);
  const Outcome lines = attnlab({"run", config, "--format", "jsonl"});
  CHECK(std::count(lines.out.begin(), lines.out.end(), '\n') == 3);
}

TEST_CASE("what cannot be a head's weights is refused in one line that names the file") {
  const TemporaryFolder folder;
  const std::string w = folder.write("w.csv", "0.5,0.5\n0.5,0.6\n");
  check_refused({"saturation", "--weights", w}, {w + ": weights: got the sum 1.1 in row [1]"});
  check_refused({"saturation", "--weights", folder / "none.npy"}, {"none.npy"});
  const std::string good = folder.write("good.csv", "0.5,0.5\n");
  check_refused({"saturation", "--weights", good, "--d-k", "4"}, {"command line: --d-k: got 4"});
  check_refused({"saturation", "--weights", good, "--shard", "1/2", "--format", "json"},
                {"command line: --shard: got 1/2"});
  check_refused({"saturation", "--config", "-"},
                {"standard input: weights: got the sum 0.5 in row [0]"},
                {.stdin_text = R"({"weights": [[0.5, 0]]})"});
}

}  // namespace
}  // namespace attnlab
