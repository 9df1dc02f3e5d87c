#include "attnlab/experiments/sweep.h"

#include <algorithm>
#include <atomic>

#include "catch.h"
#include "experiments/inputs.h"
#include "experiments/sum_task.h"

namespace attnlab {
namespace {

std::vector<StatePart> parts_of(Index points, std::uint64_t trials, Index shards) {
  std::vector<StatePart> parts;
  for (Index i = 1; i <= shards; ++i) {
    const std::string shard = std::to_string(i) + "/" + std::to_string(shards);
    const Ran part = ran(task_of(points, trials), part_of(shard));
    parts.insert(parts.end(), part.status.parts->begin(), part.status.parts->end());
  }
  return parts;
}

TEST_CASE("a sweep measures every point and tells its rows in order") {
  std::vector<std::string> told;
  std::vector<double> shares;
  Watch watch;
  watch.row = [&](const std::vector<ResultRef>& cells) {
    CHECK(cells[0].name == "point");
    told.push_back(std::to_string(*std::get<const Index*>(cells[0].value)) +
                   *std::get<const std::string*>(cells[1].value));
  };
  watch.progress = [&](double share) { shares.push_back(share); };
  SweepOptions options;
  options.run.threads = 3;
  const Ran result = ran(task_of(3, 1000), options, watch);
  REQUIRE(result.rows.size() == 6);
  CHECK(told ==
        std::vector<std::string>{"0first", "0second", "1first", "1second", "2first", "2second"});
  for (std::size_t p = 0; p < 3; ++p) {
    CHECK(result.rows[2 * p].sum == expected_sum(1000, static_cast<double>(p)));
    CHECK(result.rows[2 * p].count == 1000);
  }
  CHECK_FALSE(result.status.interrupted);
  CHECK_FALSE(result.status.parts);
  CHECK_FALSE(result.status.shard);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.front() > 0);
  CHECK(shares.back() == 1);
}

TEST_CASE("the share of the work goes by what the points cost") {
  auto task = task_of(2, 64);
  task.cost = [](Index point) { return point == 0 ? 3.0 : 1.0; };
  std::vector<double> shares;
  Watch watch;
  watch.progress = [&](double share) { shares.push_back(share); };
  ran(task, {}, watch);
  CHECK(shares == std::vector<double>{0.75, 1});
}

TEST_CASE("a cancelled sweep keeps the rows of whole points and says so") {
  std::atomic<int> begun{0};
  std::atomic<bool> cancel{false};
  Watch watch;
  watch.cancel = &cancel;
  // 16 blocks a point: in the middle of the second.
  auto task = task_of(3, 1024, &begun);
  const auto work = task.work;
  task.work = [&, work](Index point, SumState& state, std::uint64_t first, std::uint64_t last) {
    work(point, state, first, last);
    if (begun == 20) cancel = true;
  };
  SweepOptions options;
  options.run.threads = 1;
  const Ran result = ran(task, options, watch);
  CHECK(result.status.interrupted);
  REQUIRE(result.rows.size() == 2);
  CHECK(result.rows[0].sum == expected_sum(1024, 0));
  CHECK(begun == 20);
}

TEST_CASE("a sweep cancelled before it begins measures nothing") {
  const std::atomic<bool> cancel{true};
  std::atomic<int> begun{0};
  Watch watch;
  watch.cancel = &cancel;
  SweepOptions options = part_of("1/2");
  const Ran result = ran(task_of(2, 640, &begun), options, watch);
  CHECK(result.rows.empty());
  CHECK(result.status.interrupted);
  CHECK(result.status.parts->empty());
  CHECK(begun == 0);
}

TEST_CASE("one cancelled after its last block is not interrupted") {
  std::atomic<bool> cancel{false};
  Watch watch;
  watch.cancel = &cancel;
  watch.progress = [&](double share) { cancel = share == 1; };
  const Ran result = ran(task_of(2, 64), {}, watch);
  CHECK(result.rows.size() == 4);
  CHECK_FALSE(result.status.interrupted);
}

TEST_CASE("shards are parsed as I/N and nothing else") {
  CHECK(parse_shard("", 64).count == 1);
  CHECK(parse_shard("", 64).index == 1);
  CHECK(parse_shard("2/4", 256).index == 2);
  CHECK(parse_shard("2/4", 256).count == 4);
  CHECK(parse_shard("1/1", 1).count == 1);
  for (const char* text :
       {"0/4", "5/4", "1", "/4", "1/", "/", "1/4/4", "-1/4", "1/-4", "+1/4", " 1/4", "1/4 ",
        "1.0/4", "0x1/4", "one/four", "1/0", "0/0", "18446744073709551616/18446744073709551617"}) {
    INFO(text);
    CHECK(refusal([&] { parse_shard(text, 10000); }) ==
          "shard: got " + std::string(text) + ", need I/N with 1 <= I <= N");
  }
}

TEST_CASE("there are at most as many shards as blocks of trials") {
  CHECK(parse_shard("4/4", 193).count == 4);  // three blocks and one trial
  CHECK(refusal([] { parse_shard("4/5", 256); }) ==
        "shard: got 4/5, need at most 4 parts: 256 trials are done in blocks of 64");
  CHECK(refusal([] { parse_shard("1/2", 64); }).find("need at most 1 parts") != std::string::npos);
}

TEST_CASE("parts of shards join to what one run gives, whatever their order") {
  const Ran whole = ran(task_of(3, 1000));
  for (const Index shards : {1, 2, 4, 7, 16}) {
    std::vector<StatePart> parts = parts_of(3, 1000, shards);
    std::reverse(parts.begin(), parts.end());
    std::atomic<int> begun{0};
    Watch watch;
    watch.parts = &parts;
    const Ran merged = ran(task_of(3, 1000, &begun), {}, watch);
    INFO(shards << " shards");
    CHECK(begun == 0);
    REQUIRE(merged.rows.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(merged.rows[i].sum == whole.rows[i].sum);
      CHECK(merged.rows[i].count == whole.rows[i].count);
    }
    CHECK_FALSE(merged.status.parts);
  }
}

TEST_CASE("a shard measures its part alone and names itself") {
  const Ran part = ran(task_of(1, 256), part_of("2/4"));
  CHECK(part.status.shard == "2/4");
  REQUIRE(part.status.parts->size() == 1);
  const StatePart& only = part.status.parts->front();
  CHECK(only.point == 0);
  CHECK(only.first_block == 1);
  CHECK(only.level == 0);
  CHECK(only.state == std::vector<double>{(64 + 127) * 32, 64});
  CHECK(part.rows[0].count == 64);
}

TEST_CASE("parts that are no whole run are refused") {
  const std::vector<StatePart> good = parts_of(2, 256, 4);
  const auto refused = [](const std::vector<StatePart>& parts) {
    Watch watch;
    watch.parts = &parts;
    return refusal([&] { ran(task_of(2, 256), {}, watch); });
  };
  const auto changed = [&](auto change) {
    std::vector<StatePart> parts = good;
    change(parts[0]);
    return refused(parts);
  };
  CHECK(refused(good) == "");

  std::vector<StatePart> missing = good;
  missing.erase(missing.begin() + 2);
  CHECK(refused(missing) == "parts: got 3 blocks, need all 4, those of every shard");
  CHECK(refused({}) == "parts: got 0 blocks, need all 4, those of every shard");

  std::vector<StatePart> twice = good;
  twice.push_back(good[2]);
  CHECK(refused(twice).find("is there twice") != std::string::npos);

  // Of a longer run.
  std::vector<StatePart> more = good;
  more.push_back({0, 4, 0, {1, 1}});
  CHECK(refused(more) == "parts: got 1 trials, need 0 in these blocks");
  CHECK(changed([](StatePart& part) {
          ++part.state[1];
        }).find(" trials, need 64 in these blocks") != std::string::npos);
  // Of a run of more points.
  std::vector<StatePart> beyond = good;
  beyond.push_back({2, 0, 2, {1, 1}});
  CHECK(refused(beyond) == "parts: hold a point that this run does not have");
  CHECK(changed([](StatePart& part) { part.point = -1; }) ==
        "parts: hold a point that this run does not have");

  const std::string other = "parts: hold a state of another command or version";
  CHECK(changed([](StatePart& part) { part.state.pop_back(); }) == other);
  CHECK(changed([](StatePart& part) { part.state.push_back(0); }) == other);
  CHECK(changed([](StatePart& part) { part.state.clear(); }) == other);

  const std::string place = "parts: hold a block that is no place of a run";
  CHECK(changed([](StatePart& part) { part.first_block = -1; }) == place);
  CHECK(changed([](StatePart& part) { part.level = -1; }) == place);
  CHECK(changed([](StatePart& part) { part.level = 63; }) == place);
  CHECK(changed([](StatePart& part) { part.first_block = 1; }) != "");
  CHECK(changed([](StatePart& part) { part.level = 1; }) != "");
}

TEST_CASE("a merge goes with neither shard nor resume, and those not with each other") {
  const std::vector<StatePart> parts = parts_of(1, 64, 1);
  Watch watch;
  watch.parts = &parts;
  CHECK(refusal([&] { ran(task_of(1, 64), part_of("1/1"), watch); }) ==
        "shard: cannot stand in a run whose parts are merged");
  CHECK(refusal([&] { ran(task_of(1, 64), resuming("rows.jsonl"), watch); }) ==
        "resume: cannot stand in a run whose parts are merged");
  SweepOptions both = part_of("1/1");
  both.resume = FilePath{"rows.jsonl"};
  CHECK(refusal([&] { ran(task_of(1, 64), both); }) ==
        "resume: got rows.jsonl, cannot go with shard: a part keeps states, not rows");
}

}  // namespace
}  // namespace attnlab
