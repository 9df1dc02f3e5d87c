#include "attnlab/experiments/sweep_resume.h"

#include <atomic>
#include <cmath>

#include "catch.h"
#include "experiments/inputs.h"
#include "experiments/sum_task.h"
#include "temporary_folder.h"

namespace attnlab {
namespace {

std::string row_line(Index point, const std::string& half, const std::string& rest) {
  return "{\"point\": " + std::to_string(point) + ", \"half\": \"" + half + "\", " + rest +
         ", \"run\": \"here\"}\n";
}
const std::string kFirst = "\"sum\": 5, \"count\": 7, \"list\": [3, \"NaN\"]";
const std::string kSecond = "\"sum\": null, \"count\": null, \"list\": []";

TEST_CASE("a run goes on from the whole points of an earlier one") {
  const TemporaryFolder folder;
  // The third row is half a point: its point is measured again.
  const std::string path =
      folder.write("rows.jsonl", row_line(0, "first", kFirst) + row_line(0, "second", kSecond) +
                                     row_line(1, "first", kFirst));
  std::atomic<int> begun{0};
  std::vector<std::string> told;
  Watch watch;
  watch.run = "here";
  watch.row = [&](const std::vector<ResultRef>& cells) {
    told.push_back(*std::get<const std::string*>(cells[1].value));
  };
  std::vector<double> shares;
  watch.progress = [&](double share) { shares.push_back(share); };
  SweepOptions options = resuming(path);
  options.run.threads = 1;
  const Ran result = ran(task_of(3, 64, &begun), options, watch);
  REQUIRE(result.rows.size() == 6);
  CHECK(begun == 2);
  CHECK(told.size() == 6);
  CHECK(shares == std::vector<double>{0.5, 1});
  // From the file, as it stands there.
  CHECK(result.rows[0].sum == 5);
  CHECK(result.rows[0].count == 7);
  REQUIRE(result.rows[0].list.size() == 2);
  CHECK(result.rows[0].list[0] == 3);
  CHECK(std::isnan(result.rows[0].list[1]));
  CHECK_FALSE(result.rows[1].sum);
  CHECK_FALSE(result.rows[1].count);
  CHECK(result.rows[1].list.empty());
  // Measured.
  CHECK(result.rows[2].sum == expected_sum(64, 1));
  CHECK(result.rows[4].sum == expected_sum(64, 2));
}

TEST_CASE("a run that was done is told again and nothing is measured") {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("rows.jsonl", row_line(0, "first", kFirst) + row_line(0, "second", kSecond));
  std::atomic<int> begun{0};
  const Ran result = ran(task_of(1, 64, &begun), resuming(path));
  CHECK(result.rows.size() == 2);
  CHECK(begun == 0);
  CHECK_FALSE(result.status.interrupted);
}

TEST_CASE("rows that are not of the run are refused with their line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text) {
    const std::string path = folder.write("rows.jsonl", text);
    Watch watch;
    watch.run = "here";
    const std::string said = refusal([&] { ran(task_of(1, 64), resuming(path), watch); });
    REQUIRE(said.find(path) == 0);
    return said.substr(path.size());
  };
  const std::string run =
      "run: is not of this run: the options that make the result must be the same";
  const std::string good = row_line(0, "first", kFirst);
  CHECK(refused(good + R"({"point": 0, "half": "", "sum": 1, "count": 1, "list": [], "run": "x"})"
                       "\n") == ": line 2: " + run);
  CHECK(refused(R"({"point": 0, "half": "", "sum": 1, "count": 1, "list": []})"
                "\n") == ": line 1: " + run);
  CHECK(refused(R"({"point": 0, "half": "", "sum": 1, "count": 1, "list": [], "run": 5})"
                "\n") == ": line 1: " + run);
  CHECK(refused(good + good + good) == ": line 3: this run has fewer rows");

  const auto wrong = [&](const std::string& column, const std::string& rest) {
    INFO(rest);
    CHECK(refused(row_line(0, "first", rest)) ==
          ": line 1: " + column + ": is no value of a row of this command");
  };
  wrong("sum", R"("count": 1, "list": [])");
  wrong("sum", R"("sum": "many", "count": 1, "list": [])");
  wrong("sum", R"("sum": true, "count": 1, "list": [])");
  wrong("count", R"("sum": 1, "count": 1.5, "list": [])");
  wrong("count", R"("sum": 1, "count": 1e300, "list": [])");
  wrong("count", R"("sum": 1, "count": "NaN", "list": [])");
  wrong("list", R"("sum": 1, "count": 1, "list": 5)");
  wrong("list", R"("sum": 1, "count": 1, "list": null)");
  CHECK(refused(R"({"point": null, "half": "", "sum": 1, "count": 1, "list": [], "run": "here"})"
                "\n") == ": line 1: point: is no value of a row of this command");
}

TEST_CASE("a file to resume that is not there is refused") {
  CHECK(refusal([] {
          ran(task_of(1, 64), resuming("/nowhere/rows.jsonl"));
        }).find("resume: got /nowhere/rows.jsonl") != std::string::npos);
}

TEST_CASE("rows that stand elsewhere in the run are refused") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& rows) {
    const std::string path = folder.write("rows.jsonl", rows);
    return refusal([&] { ran(task_of(3, 64), resuming(path)); });
  };
  const std::string first = row_line(0, "first", kFirst), second = row_line(0, "second", kSecond);
  CHECK(refused(first + second).empty());
  CHECK(refused(second + first).find("row 1: is not the row that stands there") !=
        std::string::npos);
  CHECK(refused(first + first).find("row 2: ") != std::string::npos);
  CHECK(refused(row_line(1, "first", kFirst) + row_line(1, "second", kSecond)).find("row 1: ") !=
        std::string::npos);
}

}  // namespace
}  // namespace attnlab
