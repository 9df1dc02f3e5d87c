// Gradients as a user asks for them, and the check of them.

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

const std::string kInputs = R"("q": [[2]], "k": [[1], [1]], "v": [[3], [7]], "scale": 0.5)";

TEST_CASE("attend shows gradients beside the output once it is given that of the output") {
  const auto with = [](const std::string& more) {
    return result_of_run({"attend", "--config", "-"}, {.stdin_text = "{" + kInputs + more + "}"});
  };
  const auto json = with(R"(, "grad_output": [[10]])");
  CHECK(json["result"].dump() ==
        R"({"output":[[5]],"grad_q":[[0]],"grad_k":[[-10],[10]],"grad_v":[[5],[5]],)"
        R"("empty_rows":0})");
  CHECK(json["options"]["grad_output"].dump() == "[[10]]");
  CHECK(with("")["result"].dump() == R"({"output":[[5]],"empty_rows":0})");
  CHECK(with(R"(, "grad_output": [[10]], "show": ["grad_v"])")["result"].dump() ==
        R"({"grad_v":[[5],[5]],"empty_rows":0})");
  const auto past = with(R"(, "grad_output": [[10]], "past_k": [[1]], "past_v": [[5]])");
  CHECK(past["result"]["grad_past_v"][0][0] == Approx(10.0 / 3));
  CHECK(past["result"]["grad_v"].size() == 2);
}

TEST_CASE("gradients are saved, and walked through after the output") {
  const TemporaryFolder folder;
  const std::string grad_output = folder.write("g.csv", "1,2\n3,4\n");
  std::vector<std::string> run = {"attend", "--n",           "2",         "--d-k",
                                  "2",      "--grad-output", grad_output, "--quiet"};
  std::vector<std::string> traced = run;
  run.insert(run.end(), {"--save", "grad_k=" + (folder / "k.csv")});
  CHECK(attnlab(run).exit_code == 0);
  CHECK_FALSE(folder.read("k.csv").empty());
  traced.emplace_back("--trace");
  const std::string text = attnlab(traced).out;
  CHECK(text.find("grad_q = scale J(weights)(grad_output v^T) k") != std::string::npos);
  CHECK(text.find("output - ") < text.find("grad_q - "));
}

TEST_CASE("gradients without that of the output, or with a wrong one, are refused") {
  const TemporaryFolder folder;
  const std::string never = folder / "never.npy";
  check_refused({"attend", "--n", "3", "--show", "grad_q"}, {"show", "grad_q", "--grad-output"});
  check_refused({"attend", "--n", "3", "--save", "grad_v=" + never},
                {"save", "grad_v", "--grad-output"});
  const std::string grad_output = folder.write("g.csv", "1,2\n3,4\n");
  check_refused({"attend", "--n", "3", "--d-k", "2", "--grad-output", grad_output, "--save",
                 "output=" + never},
                {"grad-output", "[2, 2]", "[3, 2]"});
  CHECK_FALSE(folder.has("never.npy"));
}

TEST_CASE("multihead shows the gradients there are beside output and weights") {
  const TemporaryFolder folder;
  const std::string grad_output = folder.write("g.csv", "1,2\n3,4\n");
  const std::vector<std::string> run = {"multihead", "--n",           "2",        "--d-model",
                                        "2",         "--grad-output", grad_output};
  const auto keys = [&](std::vector<std::string> more) {
    more.insert(more.begin(), run.begin(), run.end());
    const auto json = result_of_run(more);
    std::string names;
    for (const auto& [name, value] : json["result"].items()) names += name + ' ';
    return names;
  };
  CHECK(keys({}) == "weights output grad_x grad_w_q grad_w_k grad_w_v grad_w_o empty_rows ");
  CHECK(keys({"--bias", "--role", "cross"}) ==
        "weights output grad_x grad_memory grad_w_q grad_b_q grad_w_k grad_b_k grad_w_v grad_b_v "
        "grad_w_o grad_b_o empty_rows ");
  CHECK(keys({"--show", "grad_x,output"}) == "output grad_x empty_rows ");
  CHECK(keys({"--show", "none", "--save", "grad_w_o=" + (folder / "w.csv")}) == "empty_rows ");
  CHECK_FALSE(folder.read("w.csv").empty());

  std::vector<std::string> traced = run;
  traced.insert(traced.end(), {"--trace", "--quiet"});
  const std::string self = attnlab(traced).out;
  CHECK(self.find("grad_x = grad_q w_q^T + grad_k w_k^T + grad_v w_v^T") != std::string::npos);
  CHECK(self.find("grad_w_k = x^T grad_k") != std::string::npos);
  traced.insert(traced.end(), {"--role", "cross"});
  const std::string cross = attnlab(traced).out;
  CHECK(cross.find("grad_x = grad_q w_q^T\n") != std::string::npos);
  CHECK(cross.find("grad_w_k = memory^T grad_k") != std::string::npos);
}

TEST_CASE("gradients that a layer has not are refused by name") {
  const TemporaryFolder folder;
  const std::string grad_output = folder.write("g.csv", "1,2\n3,4\n");
  const std::string never = folder / "never.npy";
  check_refused({"multihead", "--n", "2", "--show", "grad_x"}, {"show", "grad_x", "--grad-output"});
  const std::vector<std::string> run = {"multihead",     "--d-model", "2",
                                        "--grad-output", grad_output, "--n"};
  const auto refused = [&](std::vector<std::string> more, const std::vector<std::string>& parts) {
    more.insert(more.begin(), run.begin(), run.end());
    check_refused(more, parts);
  };
  refused({"2", "--show", "grad_memory"}, {"show", "grad_memory", "where there is one"});
  refused({"2", "--save", "grad_b_q=" + never}, {"save", "grad_b_q", "where there are biases"});
  refused({"2", "--save", "grad_key=" + never}, {"save", "grad_key", "given apart"});
  refused({"3", "--save", "output=" + never}, {"grad-output", "[2, 2]", "[3, 2]"});
  CHECK_FALSE(folder.has("never.npy"));
}

TEST_CASE("gradcheck says with its exit code whether the gradients agree") {
  std::vector<std::string> run = {"gradcheck", "--n", "3",        "--m",       "4", "--heads", "2",
                                  "--d-k",     "3",   "--causal", "--softcap", "2", "--seed",  "3",
                                  "--format",  "json"};
  const Outcome passed = attnlab(run);
  CHECK(passed.exit_code == 0);
  const auto json = nlohmann::json::parse(passed.out)["result"];
  CHECK(json["passed"] == true);
  CHECK(json["tolerance"] == 1e-8);
  CHECK(json["rows"].size() == 3);
  CHECK(json["rows"][0]["tensor"] == "q");
  run.insert(run.end(), {"--dtype", "float32", "--tolerance", "1e-10"});
  const Outcome failed = attnlab(run);
  CHECK(failed.exit_code == 1);
  CHECK(nlohmann::json::parse(failed.out)["result"]["passed"] == false);
  check_refused({"gradcheck", "--tolerance", "-1"}, {"tolerance", "-1"});
}

TEST_CASE("gradcheck of a layer writes the layer it was of") {
  const TemporaryFolder folder;
  const std::string path = folder / "layer.safetensors";
  const auto drawn = result_of_run({"gradcheck", "--role", "decoder", "--d-model", "4", "--heads",
                                    "2", "--bias", "--n", "3", "--save-params", path});
  CHECK(drawn["result"]["passed"] == true);
  CHECK(drawn["result"]["rows"].size() == 9);
  CHECK(drawn["result"]["rows"][4]["tensor"] == "b_k");
  CHECK(drawn["result"]["rows"][4]["relative_error"].is_null());
  const auto read = result_of_run({"gradcheck", "--role", "decoder", "--params", path, "--n", "3"});
  CHECK(read["result"] == drawn["result"]);
}

}  // namespace
}  // namespace attnlab
