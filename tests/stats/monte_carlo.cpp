#include "attnlab/stats/monte_carlo.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "attnlab/core/random.h"
#include "attnlab/stats/moments.h"
#include "catch.h"

namespace attnlab {
namespace {

void add_trials(Moments& state, std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t trial = first; trial < last; ++trial) {
    std::array<float, 4> z{};
    fill_normal(z, 42, Stream::sample_q, trial);
    state.add(1e3 + std::exp(z[0]) * z[1] + z[2]);
  }
}

MergeTree<Moments> run(BlockRange range, std::uint64_t trials, Index threads) {
  return run_blocks(range, trials, threads, Moments{}, add_trials);
}

Moments run_all(std::uint64_t trials, Index threads) {
  return run({0, block_count(trials)}, trials, threads).result({});
}

// Whole blocks one after the other, merged by hand along the tree.
Moments merged_by_hand(std::uint64_t trials, std::uint64_t first_block, std::uint64_t size) {
  Moments state;
  if (size == 1) {
    const std::uint64_t first = first_block * kBlockTrials;
    if (first < trials) add_trials(state, first, std::min(trials, first + kBlockTrials));
    return state;
  }
  state = merged_by_hand(trials, first_block, size / 2);
  state.merge(merged_by_hand(trials, first_block + size / 2, size / 2));
  return state;
}

TEST_CASE("a run gives the bits of the binary tree over the blocks on any number of threads") {
  for (const std::uint64_t trials : {1u, 63u, 64u, 65u, 1000u, 5000u}) {
    const Moments expected = merged_by_hand(trials, 0, 128);
    CHECK(expected.count == trials);
    for (const Index threads : {1, 2, 3, 8}) {
      INFO("trials " << trials << ", threads " << threads);
      CHECK(run_all(trials, threads) == expected);
    }
  }
  CHECK(run_all(0, 2) == Moments{});
}

TEST_CASE("shards merge to the bits of one run, in any order and through their saved states") {
  constexpr std::uint64_t kTrials = 5000;
  const Moments whole = run_all(kTrials, 1);
  const std::uint64_t blocks = block_count(kTrials);
  for (const std::uint64_t shards : {1u, 2u, 3u, 4u, 7u, 100u}) {
    MergeTree<Moments> tree;
    for (std::uint64_t shard = shards; shard >= 1; --shard) {
      for (const auto& node : run(shard_range(blocks, shard, shards), kTrials, 2).nodes()) {
        const auto saved = node.state.values();
        tree.add({node.first_block, node.level, Moments::from_values(saved)});
      }
    }
    INFO(shards << " shards");
    CHECK(tree.covers(blocks));
    CHECK(tree.result({}) == whole);
  }
}

TEST_CASE("a longer run goes on from the blocks of a shorter one") {
  MergeTree<Moments> tree = run({0, 10}, 1000, 1);
  tree.add_all(run({10, 16}, 1000, 1));
  CHECK(tree.result({}) == run_all(1000, 1));
}

TEST_CASE("trials fill blocks, the last of them in part") {
  CHECK(block_count(0) == 0);
  CHECK(block_count(1) == 1);
  CHECK(block_count(kBlockTrials) == 1);
  CHECK(block_count(kBlockTrials + 1) == 2);
  CHECK(block_count(~std::uint64_t{0}) == ~std::uint64_t{0} / kBlockTrials + 1);
}

TEST_CASE("shards part the blocks without gap or overlap, evenly") {
  for (const std::uint64_t blocks : {0u, 1u, 10u, 64u}) {
    for (const std::uint64_t shards : {1u, 3u, 64u, 100u}) {
      std::uint64_t next = 0;
      for (std::uint64_t shard = 1; shard <= shards; ++shard) {
        const BlockRange range = shard_range(blocks, shard, shards);
        CHECK(range.first == next);
        CHECK(range.last - range.first <= blocks / shards + 1);
        next = range.last;
      }
      CHECK(next == blocks);
    }
  }
  const std::uint64_t most = ~std::uint64_t{0};
  CHECK(shard_range(most, 7, 7).last == most);
  CHECK_THROWS_AS(shard_range(4, 0, 2), InputError);
  CHECK_THROWS_AS(shard_range(4, 3, 2), InputError);
}

TEST_CASE("what overlaps, or is no place of the tree, is refused") {
  MergeTree<Moments> tree;
  tree.add({4, 2, {}});
  CHECK_THROWS_AS(tree.add({4, 2, {}}), InputError);
  CHECK_THROWS_AS(tree.add({5, 0, {}}), InputError);
  CHECK_THROWS_AS(tree.add({0, 3, {}}), InputError);
  CHECK_THROWS_AS(tree.add({1, 1, {}}), InputError);
  CHECK_THROWS_AS(tree.add({0, 63, {}}), InputError);
  CHECK_THROWS_AS(tree.add({~std::uint64_t{0}, 0, {}}), InputError);
  CHECK(tree.blocks() == 4);
  CHECK(!tree.covers(4));
  tree.add({0, 2, {}});
  CHECK(tree.covers(8));
  CHECK(!tree.covers(9));
}

TEST_CASE("progress counts every trial of the range once and ends at its number") {
  std::vector<std::uint64_t> done;
  std::uint64_t total = 0;
  RunControl control;
  control.progress = [&](std::uint64_t now, std::uint64_t all) {
    done.push_back(now);
    total = all;
  };
  run_blocks({3, 16}, 1000, 3, Moments{}, add_trials, control);
  CHECK(total == 1000 - 3 * 64);
  CHECK(done.back() == total);
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(done.size() > 1);
}

TEST_CASE("a cancelled run begins no further block and shows that blocks are missing") {
  std::atomic<bool> cancel{false};
  std::atomic<int> begun{0};
  RunControl control;
  control.cancel = &cancel;
  const auto work = [&](Moments& state, std::uint64_t first, std::uint64_t last) {
    if (++begun == 5) cancel = true;
    add_trials(state, first, last);
  };
  const auto tree = run_blocks({0, 100}, 6400, 1, Moments{}, work, control);
  CHECK(begun == 5);
  // Nor is the block kept in which it was cancelled: its work may have ended early.
  CHECK(tree.blocks() == 4);
  CHECK(!tree.covers(100));
}

TEST_CASE("an error in a trial ends the run and comes out of it") {
  const auto work = [](Moments&, std::uint64_t first, std::uint64_t) {
    if (first == 640) throw std::runtime_error("trial");
  };
  CHECK_THROWS_AS(run_blocks({0, 100}, 6400, 2, Moments{}, work), std::runtime_error);
}

}  // namespace
}  // namespace attnlab
