#include "merge_command.h"

#include "attnlab/io/json.h"
#include "catch.h"
#include "commands.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

using Strings = std::vector<std::string>;

// What is said of it, "" when it works.
std::string said(const Strings& arguments) {
  Origins origins;
  try {
    const std::vector<Command> commands = all_commands();
    const int exit_code = run_command_line(commands, arguments, origins);
    return exit_code == 0 ? "" : "exit " + std::to_string(exit_code);
  } catch (const InputError& error) {
    return origins.located(error).what();
  }
}

// The parts of a small run, as files 1.json to N.json.
class Parts {
 public:
  explicit Parts(int count, const Strings& more = {}) {
    for (int i = 1; i <= count; ++i) {
      Strings run = {"variance",
                     "--d-k",
                     "2,3",
                     "--samples",
                     "256",
                     "--shard",
                     std::to_string(i) + "/" + std::to_string(count),
                     "--output",
                     path(i)};
      run.insert(run.end(), more.begin(), more.end());
      REQUIRE(said(run) == "");
    }
  }
  std::string path(int part) const { return folder_ / (std::to_string(part) + ".json"); }
  const TemporaryFolder& folder() const { return folder_; }
  // Changes the JSON of a part in its file.
  template <class Change>
  void change(int part, const Change& change) const {
    const std::string name = std::to_string(part) + ".json";
    Json json = parse_json(folder_.read(name), name);
    change(json);
    folder_.write(name, json.dump());
  }
  // Said when those parts are merged, and no result is left then.
  std::string merged(const std::vector<int>& parts) const {
    Strings merge = {"merge", "--output", folder_ / "merged.json"};
    for (const int part : parts) merge.push_back(path(part));
    const std::string text = said(merge);
    CHECK(folder_.has("merged.json") == text.empty());
    return text;
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("parts in any order merge to the result of one run") {
  const Parts parts(3);
  REQUIRE(parts.merged({3, 1, 2}) == "");
  const std::string whole = parts.folder() / "whole.json";
  REQUIRE(said({"variance", "--d-k", "2,3", "--samples", "256", "--output", whole}) == "");
  CHECK(parts.folder().read("merged.json") == parts.folder().read("whole.json"));
}

TEST_CASE("parts that are not one whole run are refused") {
  const Parts parts(3);
  CHECK(said({"merge"}) == "command line: need the JSON files of --shard 1/N to N/N");
  CHECK(parts.merged({1, 3}) == "command line: parts: got 2/3, is missing: need every part");
  CHECK(parts.merged({1, 2}) == "command line: parts: got 3/3, is missing: need every part");
  CHECK(parts.merged({2}) == "command line: parts: got 1/3, is missing: need every part");
  CHECK(parts.merged({1, 2, 2}) == parts.path(2) + ": shard: got 2/3, is there twice");
  CHECK(parts.merged({1, 2, 3, 3}) == parts.path(3) + ": shard: got 3/3, is there twice");
  CHECK(
      said({"merge", parts.folder() / "none.json"}).find("got " + (parts.folder() / "none.json")) !=
      std::string::npos);
}

TEST_CASE("parts of different runs are refused") {
  const Parts parts(2);
  parts.change(2, [](Json& json) { json["options"]["seed"] = 1; });
  CHECK(parts.merged({1, 2}) == parts.path(2) + ": options: need the same as in " + parts.path(1));
  CHECK(parts.merged({2, 1}) == parts.path(1) + ": options: need the same as in " + parts.path(2));
  parts.change(2, [](Json& json) {
    json["options"]["seed"] = 0;
    json["command"] = "gradients";
  });
  CHECK(parts.merged({1, 2}) == parts.path(2) + ": command: need the same as in " + parts.path(1));
  parts.change(2, [](Json& json) {
    json["command"] = "variance";
    json["result"]["shard"] = "2/3";
  });
  CHECK(parts.merged({1, 2}) ==
        parts.path(2) + ": shard: got 2/3, need parts of one number, N in I/N");
}

TEST_CASE("files that are no parts are refused by what they lack") {
  const auto refused = [](auto change) {
    const Parts parts(1);
    parts.change(1, change);
    const std::string text = parts.merged({1});
    REQUIRE(text.find(parts.path(1)) == 0);
    return text.substr(parts.path(1).size());
  };
  const std::string rule =
      ": is not there: need the JSON result of an experiment run with --shard I/N";
  for (const char* name : {"command", "options", "version", "result"}) {
    CHECK(refused([&](Json& json) { json.erase(name); }) == ": " + std::string(name) + rule);
    CHECK(refused([&](Json& json) { json[name] = 5; }) == ": " + std::string(name) + rule);
  }
  for (const char* name : {"shard", "parts"}) {
    CHECK(refused([&](Json& json) { json["result"].erase(name); }) ==
          ": " + std::string(name) + rule);
    // As in a result that is no part.
    CHECK(refused([&](Json& json) { json["result"][name] = nullptr; }) ==
          ": " + std::string(name) + rule);
  }
  CHECK(refused([](Json& json) { json = Json::array(); }) == ": command" + rule);
  CHECK(refused([](Json& json) {
          json["version"] = "0.0.0";
        }).find(": version: got 0.0.0, need parts of this version") == 0);
  CHECK(refused([](Json& json) { json["result"]["interrupted"] = true; }) ==
        ": interrupted: got true, need a part that ran to its end");
  CHECK(refused([](Json& json) { json["command"] = "variants"; }).find(": command: got variants") ==
        0);
  CHECK(refused([](Json& json) { json["command"] = "merge"; }) ==
        ": command: got merge, has no parts to merge");
}

TEST_CASE("broken parts are refused, whatever is broken") {
  const auto refused = [](auto change) {
    const Parts parts(1);
    parts.change(1, [&](Json& json) { change(json["result"]["parts"]); });
    return parts.merged({1});
  };
  const auto is_told = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  is_told(refused([](Json& parts) { parts.push_back(5); }), "parts: need a list of objects");
  for (const char* name : {"point", "first_block", "level"}) {
    const std::string rule = std::string(name) + ": need a whole number in each of parts";
    is_told(refused([&](Json& parts) { parts[0].erase(name); }), rule);
    is_told(refused([&](Json& parts) { parts[0][name] = 1.5; }), rule);
    is_told(refused([&](Json& parts) { parts[0][name] = "1"; }), rule);
    CHECK(refused([&](Json& parts) { parts[0][name] = -1; }) != "");
    CHECK(refused([&](Json& parts) { parts[0][name] = 1000000; }) != "");
    CHECK(refused([&](Json& parts) { parts[0][name] = 18446744073709551615U; }) != "");
  }
  is_told(refused([](Json& parts) { parts[0].erase("state"); }), "state: is not there");
  CHECK(refused([](Json& parts) { parts[0]["state"][0] = "text"; }) != "");
  CHECK(refused([](Json& parts) { parts[0]["state"][0] = nullptr; }) != "");
  CHECK(refused([](Json& parts) { parts[0]["state"][0] = -1; }) != "");
  is_told(refused([](Json& parts) { parts[0]["state"].push_back(1); }),
          "parts: hold a state of another command or version");
  is_told(refused([](Json& parts) { parts.erase(0); }), "need all 4, those of every shard");
  is_told(refused([](Json& parts) { parts.push_back(Json(parts[0])); }), "is there twice");
}

TEST_CASE("a result that is no part says what merge needs") {
  const TemporaryFolder folder;
  const std::string whole = folder / "whole.json";
  REQUIRE(said({"variance", "--d-k", "2", "--samples", "64", "--output", whole}) == "");
  CHECK(said({"merge", whole}).find(": shard: is not there: need the JSON result") !=
        std::string::npos);
}

TEST_CASE("parts whose options were changed after measuring are refused") {
  const Parts parts(2);
  for (const int part : {1, 2}) {
    parts.change(part, [](Json& json) { json["options"]["seed"] = 5; });
  }
  CHECK(parts.merged({1, 2}).find("1.json: options: are not those") != std::string::npos);
}

TEST_CASE("a list in the place of a number of a state is refused") {
  const Parts parts(2);
  parts.change(1, [](Json& json) { json["result"]["parts"][0]["state"][1] = {1, 2}; });
  CHECK(parts.merged({1, 2}).find("1.json: state: need a list of numbers") != std::string::npos);
}

}  // namespace
}  // namespace attnlab
