#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attnlab/core/error.h"

namespace attnlab {

// Merges the states of blocks along one fixed binary tree over the block index: blocks 2i and
// 2i + 1 first, then those pairs, and so on. Whatever the order in which blocks come, on whatever
// thread or machine, every merge has the same two operands, so that the result has the same bits.
// State has void merge(const State&), and merging with an empty state must change nothing.
template <class State>
class MergeTree {
 public:
  // The merged state of the 2^level blocks from first_block on, a multiple of 2^level.
  struct Node {
    std::uint64_t first_block = 0;
    unsigned level = 0;
    State state;
  };

  // Throws InputError when the node is no place of the tree or shares blocks with one that is
  // there: parts come from files too.
  void add(Node node) {
    check(node);
    for (;;) {
      const std::uint64_t size = std::uint64_t{1} << node.level;
      const bool is_left = (node.first_block & size) == 0;
      const auto sibling = nodes_.find(is_left ? node.first_block + size : node.first_block - size);
      if (sibling == nodes_.end() || sibling->second.first != node.level) break;
      State other = std::move(sibling->second.second);
      nodes_.erase(sibling);
      if (is_left) {
        node.state.merge(other);
      } else {
        other.merge(node.state);
        node.state = std::move(other);
        node.first_block -= size;
      }
      ++node.level;
    }
    nodes_.emplace(node.first_block, std::pair(node.level, std::move(node.state)));
  }
  void add_block(std::uint64_t block, State state) { add({block, 0, std::move(state)}); }

  // What could not be merged further, by block: what a shard leaves for another to go on with.
  std::vector<Node> nodes() const {
    std::vector<Node> nodes;
    for (const auto& [first, node] : nodes_) nodes.push_back({first, node.first, node.second});
    return nodes;
  }
  void add_all(const MergeTree& other) {
    for (Node& node : other.nodes()) add(std::move(node));
  }

  // Blocks that are in.
  std::uint64_t blocks() const {
    std::uint64_t count = 0;
    for (const auto& [first, node] : nodes_) count += std::uint64_t{1} << node.first;
    return count;
  }
  // Whether they are the first `count` blocks and no others.
  bool covers(std::uint64_t count) const {
    std::uint64_t next = 0;
    for (const auto& [first, node] : nodes_) {
      if (first != next) return false;
      next = first + (std::uint64_t{1} << node.first);
    }
    return next == count;
  }

  // The state of all, as the tree over a power of two of blocks gives it where those missing at the
  // end are empty. `empty` when there are none.
  State result(State empty) const {
    State sum = std::move(empty);
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      State left = node->second.second;
      left.merge(sum);
      sum = std::move(left);
    }
    return sum;
  }

 private:
  static constexpr unsigned kLevels = 62;

  void check(const Node& node) const {
    const auto refuse = [&](const char* rule) {
      throw InputError("", "block",
                       std::to_string(node.first_block) + " of level " + std::to_string(node.level),
                       rule);
    };
    if (node.level > kLevels || node.first_block >> kLevels != 0) refuse("is no block of the tree");
    const std::uint64_t size = std::uint64_t{1} << node.level;
    if (node.first_block % size != 0) refuse("is no place of the tree");
    const auto after = nodes_.lower_bound(node.first_block);
    if (after != nodes_.end() && after->first < node.first_block + size) {
      refuse("is there twice: the parts overlap");
    }
    if (after != nodes_.begin()) {
      const auto before = std::prev(after);
      if (before->first + (std::uint64_t{1} << before->second.first) > node.first_block) {
        refuse("is there twice: the parts overlap");
      }
    }
  }

  std::map<std::uint64_t, std::pair<unsigned, State>> nodes_;  // by first block
};

}  // namespace attnlab
