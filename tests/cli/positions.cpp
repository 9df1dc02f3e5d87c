// Rotary positions, linear biases and norms as a user meets them: flags, files, traces, refusals.

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a rotated decoder's steps through files give the rows of the whole sequence") {
  const TemporaryFolder folder;
  const std::string path = folder / "layer.safetensors";
  CHECK(attnlab({"multihead", "--d-model", "8", "--heads", "4", "--kv-heads", "2", "--bias",
                 "--qk-norm", "--dtype", "float64", "--seed", "3", "--save-params", path})
            .exit_code == 0);
  const std::vector<std::string> lines = {"1,0,2,-1,.5,3,-2,1\n", "0,1,-1,2,1,-.5,.3,2\n",
                                          "-1,2,.1,0,1,1,-3,.7\n", "2,2,-1,.4,0,-2,1,1\n"};
  const auto run = [&](const std::string& x, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"multihead", "--params",     path,      "--x",
                                    x,           "--role",       "decoder", "--quiet",
                                    "--alibi",   "--rope-theta", "100"};
    all.insert(all.end(), more.begin(), more.end());
    return numbers(result_of_run(all)["result"]["output"]);
  };
  const std::string all = folder.write("all.csv", lines[0] + lines[1] + lines[2] + lines[3]);
  const std::vector<double> whole = run(all, {});
  const std::string k = folder / "k.npy", v = folder / "v.npy";
  std::vector<double> steps;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> more = {"--save", "present_k=" + k, "--save", "present_v=" + v};
    if (i > 0) more.insert(more.end(), {"--past-k", k, "--past-v", v});
    for (const double value : run(folder.write("row.csv", lines[i]), more)) steps.push_back(value);
  }
  check_close(steps, whole, 1e-13);
}

TEST_CASE("flags and keys of positions are the same options") {
  const auto flags = result_of_run({"attend", "--n", "3", "--d-k", "4", "--rope-theta", "100",
                                    "--alibi", "--show", "rotated_q,weights", "--quiet"});
  const auto keys = result_of_run({"attend", "--config", "-", "--quiet"}, {.stdin_text = R"(
      {"n": 3, "d_k": 4, "rope_theta": 100, "alibi": true, "show": ["rotated_q", "weights"]})"});
  CHECK(flags["result"] == keys["result"]);
  CHECK(flags["options"]["rope_theta"] == 100);
  CHECK(flags["options"]["alibi"] == true);
  CHECK(flags["result"]["rotated_q"].size() == 3);
}

TEST_CASE("a trace of a layer norms, then rotates, then lets queries and keys meet") {
  const Outcome outcome = attnlab({"multihead", "--n", "3", "--d-model", "4", "--heads", "1",
                                   "--qk-norm", "--rope-theta", "100", "--trace", "--quiet"});
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, " = q / rms(q) * q_norm\n"));
  CHECK(contains(outcome.out, " = rotate(normed_q)\n"));
  CHECK(contains(outcome.out, "raw_scores = rotated_q rotated_k^T\n"));
  CHECK(contains(outcome.out, ", 0] cos("));
  const Outcome normed = attnlab({"multihead", "--n", "3", "--d-model", "4", "--heads", "1",
                                  "--qk-norm", "--trace", "--quiet"});
  CHECK(contains(normed.out, "raw_scores = normed_q normed_k^T\n"));
  CHECK_FALSE(contains(normed.out, "rotate"));
  const Outcome plain = attnlab({"multihead", "--n", "3", "--d-model", "4", "--trace", "--quiet"});
  CHECK(contains(plain.out, "raw_scores = q k^T\n"));
  CHECK_FALSE(contains(plain.out, "normed"));
}

TEST_CASE("positions that cannot be are refused by the name of their flag") {
  check_refused({"attend", "--rope-theta", "0.5"}, {"rope-theta", "0.5", "1"});
  check_refused({"attend", "--d-k", "3", "--rope-theta", "100"}, {"rope-theta", "d_k = 3", "even"});
  check_refused({"attend", "--offset", "2"}, {"offset", "rope_theta or alibi"});
  check_refused({"attend", "--rope-theta", "100", "--offset", "300000000"},
                {"rope-theta", "300000000", "268435456"});
  check_refused({"multihead", "--qk-norm-eps", "1e-5"}, {"qk-norm-eps", "1e-05"});
}

}  // namespace
}  // namespace attnlab
