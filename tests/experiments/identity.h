#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "attnlab/core/describe.h"
#include "attnlab/core/watch.h"
#include "catch.h"

namespace attnlab {

// A number with all its bits.
inline std::string bits_of(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}
inline std::string bits_of(bool value) { return value ? "true" : "false"; }
inline std::string bits_of(Index value) { return std::to_string(value); }
inline std::string bits_of(const std::string& value) { return value; }
template <class T>
std::string bits_of(const std::optional<T>& value) {
  return value ? bits_of(*value) : "-";
}
template <class T>
std::string bits_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += bits_of(value) + ",";
  return text;
}
inline std::string bits_of(const std::vector<ResultRef>& cells) {
  std::string text;
  for (const ResultRef& cell : cells) {
    text += std::string(cell.name) + "=";
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_pointer_v<T> &&
                        !std::is_same_v<T, const std::optional<AnyTensor>*>) {
            text += bits_of(*value);
          }
        },
        cell.value);
    text += " ";
  }
  return text;
}
template <class Row>
std::string bits_of_rows(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) text += bits_of(result_of(row)) + "\n";
  return text;
}

// The rows of a run have the same bits for 1, 2, 3 and 8 threads and when merged from 1, 2 and 4
// shards.
template <class Experiment, class Options>
void check_identity(const Experiment& experiment, Options options) {
  options.sweep.run.threads = 1;
  const auto whole = experiment(options, Watch{});
  const std::string expected = bits_of_rows(whole.rows);
  REQUIRE_FALSE(whole.rows.empty());
  for (const Index threads : {2, 3, 8}) {
    INFO(threads << " threads");
    options.sweep.run.threads = threads;
    CHECK(bits_of_rows(experiment(options, Watch{}).rows) == expected);
  }
  for (const int shards : {1, 2, 4}) {
    INFO(shards << " shards");
    std::vector<StatePart> parts;
    for (int i = shards; i >= 1; --i) {
      options.sweep.shard = std::to_string(i) + "/" + std::to_string(shards);
      options.sweep.run.threads = i;
      const auto part = experiment(options, Watch{});
      REQUIRE(part.status.parts);
      // Of a part alone the rows are others.
      if (shards > 1) CHECK(bits_of_rows(part.rows) != expected);
      parts.insert(parts.end(), part.status.parts->begin(), part.status.parts->end());
    }
    options.sweep.shard.clear();
    Watch watch;
    watch.parts = &parts;
    const auto merged = experiment(options, watch);
    CHECK(bits_of_rows(merged.rows) == expected);
    CHECK(merged.finding == whole.finding);
    CHECK(merged.notes == whole.notes);
  }
}

}  // namespace attnlab
