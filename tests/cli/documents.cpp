// Every file in configs/ and every command of the README, as a user types them.

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/json_result.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = fs::path(ATTNLAB_CONFIGS).parent_path();

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("every config runs, and its result runs again to the same bytes, times aside") {
  const TemporaryFolder folder;
  std::set<std::string> commands;
  for (const auto& entry : fs::directory_iterator(ATTNLAB_CONFIGS)) {
    INFO(entry.path().string());
    const Outcome table = attnlab({"run", entry.path().string()});
    CHECK(table.exit_code == 0);
    CHECK_FALSE(table.out.empty());
    const Outcome first = attnlab({"run", entry.path().string(), "--format", "json"});
    REQUIRE(first.exit_code == 0);
    const auto parsed = nlohmann::json::parse(first.out);
    bool timed = false;
    for (const auto& one : parsed.is_array() ? parsed : nlohmann::json::array({parsed})) {
      commands.insert(one["command"].get<std::string>());
      timed = timed || one["command"] == "bench";
    }
    const std::string result = folder.write("result.json", first.out);
    const Outcome again = attnlab({"run", result, "--format", "json"});
    if (timed) {
      CHECK(nlohmann::json::parse(again.out)["options"] == parsed["options"]);
    } else {
      CHECK(again.out == first.out);
    }
  }
  CHECK(commands == std::set<std::string>{"attend", "bench", "compare", "diagnose", "gradcheck",
                                          "gradients", "multihead", "roles", "saturation",
                                          "softmax", "tensors", "variance", "weights"});
}

// A command of the README and the output under it.
struct Example {
  std::string command;
  std::string output;
};

// Blocks marked ```console: "$ command" lines, each with the output that follows it.
std::vector<Example> examples_in(const std::string& document) {
  std::vector<Example> examples;
  std::istringstream lines(document);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```console";
    } else if (inside && line.rfind("$ ", 0) == 0) {
      examples.push_back({line.substr(2), ""});
    } else if (inside && !examples.empty()) {
      examples.back().output += line + "\n";
    }
  }
  return examples;
}

// Words of a command line; double quotes keep spaces.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char c : command + " ") {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

// A line "..." in what is expected stands for any number of lines.
bool matches(const std::string& expected, const std::string& got) {
  const auto gap = expected.find("...\n");
  if (gap == std::string::npos) return expected == got;
  if (gap != 0 && expected[gap - 1] != '\n') return expected == got;
  if (got.compare(0, gap, expected, 0, gap) != 0) return false;
  const std::string rest = expected.substr(gap + 4);
  for (std::size_t at = gap; at <= got.size(); ++at) {
    if ((at == gap || got[at - 1] == '\n') && matches(rest, got.substr(at))) return true;
  }
  return false;
}

TEST_CASE("every command of the README prints what stands under it") {
  // Some write files that later ones read.
  const TemporaryFolder folder;
  fs::create_directory_symlink(ATTNLAB_CONFIGS, folder / "configs");
  const std::vector<Example> examples = examples_in(text_of(kRoot / "README.md"));
  CHECK(examples.size() >= 7);
  for (const Example& example : examples) {
    INFO(example.command);
    std::vector<std::string> words = words_of(example.command);
    REQUIRE(words.at(0) == "attnlab");
    words.erase(words.begin());
    const Outcome outcome = attnlab(words, {.folder = folder.path()});
    INFO(outcome.out + outcome.err);
    CHECK(matches(example.output, outcome.out + outcome.err));
  }
}

}  // namespace
}  // namespace attnlab
