// diagnose as a user runs it.

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

TEST_CASE("diagnose names the semantics of a saved output, and says so with its exit code") {
  const TemporaryFolder folder;
  const std::string output = folder / "z.npy";
  const std::vector<std::string> inputs = {"--n",      "5",          "--m", "7",      "--heads",
                                           "4",        "--d-k",      "3",   "--seed", "2",
                                           "--causal", "--kv-heads", "2"};
  const auto run = [&](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), inputs.begin(), inputs.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return attnlab(arguments);
  };
  REQUIRE(run({"attend"}, {"--align", "bottom-right", "--save", "output=" + output}).exit_code ==
          0);

  const Outcome right =
      run({"diagnose"}, {"--align", "bottom-right", "--candidate", output, "--format", "json"});
  INFO(right.out + right.err);
  CHECK(right.exit_code == 0);
  const auto equal = nlohmann::json::parse(right.out);
  CHECK(equal["result"]["equal"] == true);
  CHECK(equal["result"]["rows"][0]["mistake"] == "correct");
  CHECK(equal["options"]["candidate"] == output);

  const Outcome wrong = run({"diagnose"}, {"--candidate", output, "--format", "json"});
  CHECK(wrong.exit_code == 1);
  const auto result = nlohmann::json::parse(wrong.out)["result"];
  CHECK(result["equal"] == false);
  CHECK(result["found"] == nlohmann::json::array({"bottom_right"}));
  CHECK(result["departs_from"] == "correct");
  CHECK(result["row"] == 0);
  CHECK(result["tile"].is_null());

  const Outcome table = run({"diagnose"}, {"--candidate", output, "--quiet"});
  CHECK(table.exit_code == 1);
  CHECK(table.out.find("The candidate equals attention with the diagonal bottom-right to") !=
        std::string::npos);
}

TEST_CASE("diagnose refuses what it cannot look at") {
  const TemporaryFolder folder;
  const std::string flat = folder.write("z.csv", "1,2\n3,4\n");
  check_refused({"diagnose", "--n", "3"}, {"--candidate", "is needed"});
  check_refused({"diagnose", "--n", "3", "--d-k", "2", "--candidate", flat},
                {"--candidate", "[2, 2]", "[3, 2]"});
  check_refused({"diagnose", "--n", "2", "--candidate", flat, "--tolerance", "-1"},
                {"--tolerance", "-1"});
}

}  // namespace
}  // namespace attnlab
