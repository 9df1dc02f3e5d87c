// Decoding as a user does it: each step is given the keys and values that the one before saved.

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

// A layer on disk, drawn with these options too, and the options that read it.
std::vector<std::string> layer_in(const TemporaryFolder& folder,
                                  const std::vector<std::string>& drawn_with = {}) {
  const std::string path = folder / "layer.safetensors";
  std::vector<std::string> draw = {
      "multihead", "--d-model", "8",       "--heads", "4", "--kv-heads",    "2",
      "--bias",    "--dtype",   "float64", "--seed",  "3", "--save-params", path};
  draw.insert(draw.end(), drawn_with.begin(), drawn_with.end());
  CHECK(attnlab(draw).exit_code == 0);
  return {"multihead", "--params", path, "--quiet"};
}

// With `drawn_with` and `applied_with` as more options of the layer and of its use.
void check_steps(const std::vector<std::string>& drawn_with,
                 const std::vector<std::string>& applied_with) {
  const TemporaryFolder folder;
  std::vector<std::string> layer = layer_in(folder, drawn_with);
  layer.insert(layer.end(), applied_with.begin(), applied_with.end());
  const std::vector<std::string> lines = {"1,0,2,-1,.5,3,-2,1\n", "0,1,-1,2,1,-.5,.3,2\n",
                                          "-1,2,.1,0,1,1,-3,.7\n", "2,2,-1,.4,0,-2,1,1\n"};
  const auto run = [&](const std::string& x, std::vector<std::string> more) {
    more.insert(more.begin(), layer.begin(), layer.end());
    more.insert(more.end(), {"--x", x, "--role", "decoder"});
    return numbers(result_of_run(more)["result"]["output"]);
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

TEST_CASE("a decoder's steps through files give the rows of the whole sequence") {
  SECTION("capped") { check_steps({}, {"--softcap", "2"}); }
  SECTION("with positions and norms") {
    check_steps({"--qk-norm"}, {"--alibi", "--rope-theta", "100"});
  }
}

TEST_CASE("the keys of a memory are computed once for all steps of cross-attention") {
  const TemporaryFolder folder;
  std::vector<std::string> run = layer_in(folder);
  const std::string k = folder / "k.npy", v = folder / "v.npy";
  const std::string x = folder.write("x.csv", "1,0,2,-1,.5,3,-2,1\n0,1,-1,2,1,-.5,.3,2\n");
  const std::string memory =
      folder.write("m.csv", "1,1,1,1,0,0,0,0\n0,1,0,1,0,1,0,1\n2,0,0,0,0,0,0,1\n");
  run.insert(run.end(), {"--role", "cross", "--x", x});
  std::vector<std::string> first = run;
  first.insert(first.end(),
               {"--memory", memory, "--save", "present_k=" + k, "--save", "present_v=" + v});
  run.insert(run.end(), {"--past-k", k, "--past-v", v});
  const auto computed = result_of_run(first)["result"];
  CHECK(result_of_run(run)["result"] == computed);
}

TEST_CASE("a trace names all the keys and values that are attended to") {
  const TemporaryFolder folder;
  const std::string k = folder.write("k.json", "[[[[1, 2]], [[-1, 0.5]]]]");
  const auto traced = [&](std::vector<std::string> run) {
    run.insert(run.end(), {"--trace", "--quiet"});
    return attnlab(run).out;
  };
  const auto shows = [](const std::string& text, const std::string& part) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::vector<std::string> layer = {"multihead", "--n", "2", "--d-model", "4", "--seed", "2"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> run = layer;
    run.insert(run.end(), more.begin(), more.end());
    return traced(run);
  };
  const std::string past = with({"--past-k", k, "--past-v", k});
  shows(past, "= concat(past_k, k)\n");
  shows(past, "= q present_k^T\n");
  shows(past, "= weights present_v\n");
  shows(past, "= weights[0] . present_v[:, 0]");
  const std::string zeros = with({"--add-zero-attn"});
  shows(zeros, "= q concat(k, 0)^T\n");
  shows(zeros, "= weights concat(v, 0)\n");
  shows(zeros, " = [2, 2, 2] concat([2, 2, 2], 0)^T\n");
  CHECK(zeros.find("](head_1") == std::string::npos);
  shows(zeros, "= weights[0] . concat(v, 0)[:, 0]");
  CHECK(zeros.find("present_k") == std::string::npos);
  shows(with({}), "= q k^T\n");
  const std::string attend =
      traced({"attend", "--n", "2", "--d-k", "2", "--heads", "2", "--past-k", k, "--past-v", k});
  shows(attend, "= q present_k^T\n");
  shows(attend, "= weights present_v\n");
}

TEST_CASE("a past of a layer is refused by the name of its flag") {
  const TemporaryFolder folder;
  const std::string k = folder.write("k.json", "[[[[1, 2]]]]");
  check_refused({"multihead", "--past-k", k}, {"past-v", "come together"});
  check_refused({"multihead", "--past-k", k, "--past-v", k},
                {"past-k", "[1, 1, 1, 2]", "[1, 2, p, 4]"});
}

}  // namespace
}  // namespace attnlab
