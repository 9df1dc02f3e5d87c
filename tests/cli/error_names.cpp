// Errors name what the user typed: the option, its value, the file.

#include "attnlab/core/memory.h"
#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

TEST_CASE("errors of a layer's inputs name the options that were given") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  folder.write("x8.csv", "1,2,3,4,5,6,7,8\n");
  folder.write("x4.csv", "1,2,3,4\n");
  folder.write("batch.json", "[[[1,2,3,4]],[[1,2,3,4]]]");
  REQUIRE(
      attnlab({"multihead", "--d-model", "8", "--save-params", "L.safetensors"}, here).exit_code ==
      0);
  check_refused({"multihead", "--x", "x4.csv", "--params", "L.safetensors"}, {"--x: got 4 columns"},
                here);
  check_refused({"multihead", "--x", "x8.csv", "--memory", "x4.csv", "--params", "L.safetensors"},
                {"--memory: got 4 columns"}, here);
  check_refused({"multihead", "--query", "x8.csv", "--key", "x4.csv", "--value", "x8.csv",
                 "--params", "L.safetensors"},
                {"--key: got 4 columns"}, here);
  check_refused({"multihead", "--d-model", "9", "--x", "x8.csv"}, {"--d-model: got 9"}, here);
  check_refused({"multihead", "--params", "L.safetensors", "--heads", "3"},
                {"--heads: got 3", "2 kv_heads", "L.safetensors"}, here);
  check_refused({"roles", "--source", "batch.json", "--target", "x4.csv"},
                {"--source", "target [1, 4]"}, here);
  check_refused({"roles", "--source", "no.csv", "--target", "x4.csv"}, {"--source", "no.csv"},
                here);
  check_refused({"roles", "--source", "x8.csv", "--target", "x4.csv"}, {"--source"}, here);
  check_refused({"roles", "--n-source", "5", "--source", "x4.csv", "--target", "x4.csv"},
                {"--n-source: got 5"}, here);
}

TEST_CASE("errors name the option and the value that are at fault") {
  const TemporaryFolder folder;
  const Surroundings here{.folder = folder.path()};
  check_refused({"attend", "--heads", "3", "--kv-heads", "2"}, {"--kv-heads: got 2"});
  check_refused({"attend", "--kv-heads", "2"}, {"--kv-heads: got 2"});
  check_refused({"softmax", "1", "2", "--output", "o.csv"}, {"--output: got o.csv"}, here);
  const std::string npy = folder / "q.npy";
  REQUIRE(attnlab({"attend", "--n", "2", "--save", "q=q.npy"}, here).exit_code == 0);
  check_refused({"multihead", "--params", npy}, {"--params", ".safetensors"}, here);
  check_refused({"run", "-"}, {"standard input: got []"}, {.stdin_text = "[]"});
  check_refused({"attend", "--dk", "3"}, {"--dk: unknown option, did you mean --d-k?"});
  check_refused({"attend", "--kvheads", "3"}, {"did you mean --kv-heads?"});
  check_refused({"attend", "--d_k", "3"}, {"did you mean --d-k?"});
  check_refused({"softmax", "1", "--method", "stable,stable"}, {"--method: got stable,stable"});
  check_refused({"softmax", "1", "--method", "stable,naive", "--jacobian"},
                {"--jacobian: got true"});
  check_refused({"weights", "--projections", "--top", "2"}, {"--top: got 2"});
  check_refused({"weights", "--projections", "--average"}, {"--average: got true"});
  const std::string w = folder.write("w.csv", "1,2\n");
  check_refused({"weights", w, "--scale", "3"}, {"--scale: got 3"});
  check_refused({"weights", w, "--causal"}, {"--causal: got true"});
}

// Each tensor would fit, all of them do not.
TEST_CASE("what does not fit the memory is refused before anything is drawn") {
  // float32 numbers in two fifths of the memory.
  const std::string n = std::to_string(available_memory() / 10);
  const std::vector<std::vector<std::string>> sizes = {
      {"attend", "--n", n, "--d-k", "1", "--d-v", "1"},
      {"weights", "--n", n, "--m", n, "--d-k", "2"},
      {"multihead", "--n", n, "--d-model", "1", "--heads", "1"},
      {"roles", "--n-source", n, "--n-target", "1", "--d-model", "1", "--heads", "1"}};
  for (const auto& arguments : sizes) {
    INFO(arguments[0]);
    check_refused(arguments, {arguments[1] + ": got " + n, "memory"});
  }
}

TEST_CASE("sizes beyond all bounds name their option") {
  const std::string n = "9223372036854775807";
  for (const auto& arguments : {std::vector<std::string>{"attend", "--n", n},
                                {"attend", "--m", n, "--kv-heads", "1", "--batch", "3"},
                                {"multihead", "--n", n},
                                {"roles", "--n-source", n}}) {
    check_refused(arguments, {arguments[1] + ": got " + n, "memory"});
  }
}

}  // namespace
}  // namespace attnlab
