// Rotary positions, linear biases and norms as a user meets them: flags, files, traces, refusals.

#include "cli/json_result.h"

namespace attnlab {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
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
