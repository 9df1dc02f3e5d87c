// A case of attention, from attend --save-case to compare.

#include <filesystem>

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

// Writes the case of a small causal call with these options added.
std::string case_in(const TemporaryFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"attend",       "--n",    "6",    "--heads", "2",
                                        "--causal",     "--show", "none", "--quiet", "--save-case",
                                        folder / "case"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = attnlab(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return folder / "case";
}

TEST_CASE("the config of a case runs to the same bytes wherever the folder goes") {
  const TemporaryFolder folder;
  const std::string mask = folder.write("mask.csv", "1,1,0,1,1,1\n");
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"--dtype", "bfloat16", "--softcap", "2"},
        {"--mask", mask, "--mask-kind", "attend", "--key-lengths", "4", "--seed", "3"},
        {"--dropout", ".2", "--window-left", "2", "--scale", ".3"}}) {
    case_in(folder, more);
    fs::rename(folder / "case", folder / "moved");
    const std::string again = folder / "again.npy";
    const Outcome outcome = attnlab({"attend", "--config", folder / "moved/config.json", "--save",
                                     "output=" + again, "--show", "none", "--quiet"});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(folder.read("again.npy") == folder.read("moved/output.npy"));
    CHECK(attnlab({"run", folder / "moved/config.json"}).exit_code == 0);
    CHECK(attnlab({"compare", folder / "moved", again}).exit_code == 0);
    fs::remove_all(folder / "moved");
  }
}

TEST_CASE("a case is saved from standard input, whose inputs can be read once") {
  const TemporaryFolder folder;
  const Outcome outcome =
      attnlab({"attend", "--q", folder.write("q.csv", "1,2\n"), "--k", "-", "--v",
               folder.write("v.csv", "3\n4\n"), "--save-case", folder / "case"},
              {.stdin_text = "[[1, 2], [3, 4]]"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(attnlab({"compare", folder / "case", folder / "case/output.npy"}).exit_code == 0);
}

TEST_CASE(
    "compare of a case exits 0 where it agrees, 1 where it departs, 2 where it cannot be read") {
  const TemporaryFolder folder;
  const std::string path = case_in(folder);
  const auto json = result_of_run({"compare", path, path});
  CHECK(json["result"]["equal"] == true);
  CHECK(json["result"]["departs"].is_null());
  CHECK(json["result"]["rows"].size() == 5);
  const std::string wrong = folder / "wrong.npy";
  attnlab(
      {"attend", "--config", path + "/config.json", "--scale", "1", "--save", "output=" + wrong});
  const Outcome apart = attnlab({"compare", path, wrong});
  CHECK(apart.exit_code == 1);
  CHECK(apart.out.find("The first matrix to depart from the float64 reference is output") !=
        std::string::npos);
  CHECK(apart.out.find("\nequal  false\n") != std::string::npos);
  CHECK(apart.err.find("without raw_scores, scores, masked_scores, weights") != std::string::npos);
  CHECK(attnlab({"compare", wrong, path, "--atol", "10", "--format", "jsonl"}).exit_code == 0);
  folder.write("case/case.json", "{\"case\": 1, \"dtype\": \"float32\", \"inputs\": []");
  check_refused({"compare", path, wrong}, {"case.json"});
}

TEST_CASE("a file of named tensors and a result are held against a case") {
  const TemporaryFolder folder;
  const std::string path = case_in(folder);
  const std::string result = folder / "result.json";
  attnlab({"attend", "--config", path + "/config.json", "--show", "scores,weights,output",
           "--output", result});
  const auto json = result_of_run({"compare", path, result, "--quiet"});
  std::vector<std::string> names;
  for (const auto& row : json["result"]["rows"]) names.push_back(row["name"]);
  CHECK(names == std::vector<std::string>{"scores", "weights", "output"});
  CHECK(json["result"]["rows"][0]["dtype_b"] == "float32");
  CHECK(attnlab({"compare", path, result + ":weights"}).out.find("weights") != std::string::npos);
}

TEST_CASE("a folder that is no case, or holds more, is never replaced") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "thesis");
  folder.write("thesis/chapter.txt", "years of work");
  check_refused({"attend", "--save-case", folder / "thesis"},
                {"--save-case", "is a folder and no"});
  case_in(folder);
  folder.write("case/mine.txt", "mine");
  check_refused({"attend", "--save-case", folder / "case"}, {"--save-case", "holds mine.txt too"});
  CHECK(folder.read("case/mine.txt") == "mine");
  CHECK(folder.read("thesis/chapter.txt") == "years of work");
  check_refused(
      {"attend", "--save-case", folder / "new", "--save", "output=" + (folder / "new/z.npy")},
      {"new/z.npy"});
  fs::remove(folder / "case/mine.txt");
  check_refused({"attend", "--save-case", folder / "case", "--save",
                 "output=" + (folder / "case/output.npy")},
                {"--save-case", "nothing else is written into"});
  check_refused({"attend", "--save-case", folder / "a", "--k", folder / "nowhere.npy", "--q",
                 folder / "nowhere.npy", "--v", folder / "nowhere.npy"},
                {"nowhere.npy"});
  CHECK_FALSE(fs::exists(folder / "a"));
}

TEST_CASE("a result that saved a case saves it again") {
  const TemporaryFolder folder;
  const std::string result = folder / "result.json";
  case_in(folder, {"--output", result});
  const std::string before = folder.read("case/reference/output.npy");
  fs::remove_all(folder / "case");
  CHECK(attnlab({"run", result, "--quiet"}).exit_code == 0);
  CHECK(folder.read("case/reference/output.npy") == before);
}

}  // namespace
}  // namespace attnlab
