#include "attnlab/experiments/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace attnlab {
namespace {

// A whole number and nothing else.
std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Shard parse_shard(const std::string& text, std::uint64_t trials) {
  if (text.empty()) return {};
  const std::size_t slash = text.find('/');
  const auto index = whole(std::string_view(text).substr(0, slash));
  // Without a slash the number after it is missing too.
  const auto count = whole(std::string_view(text).substr(std::min(slash, text.size() - 1) + 1));
  if (!index || !count || *index < 1 || *index > *count) {
    throw InputError("", "shard", text, "need I/N with 1 <= I <= N");
  }
  if (*count > block_count(trials)) {
    throw InputError("", "shard", text,
                     fmt::format("need at most {} parts: {} trials are done in blocks of {}",
                                 block_count(trials), trials, kBlockTrials));
  }
  return {*index, *count};
}

std::uint64_t trials_in(const StatePart& part, std::uint64_t trials) {
  const std::uint64_t blocks = block_count(trials);
  const auto first = std::min(blocks, static_cast<std::uint64_t>(part.first_block));
  const std::uint64_t last = std::min(blocks, first + (std::uint64_t{1} << part.level));
  return std::min(trials, last * kBlockTrials) - std::min(trials, first * kBlockTrials);
}

void check_sweep(const SweepOptions& options, const Watch& watch, Index points) {
  if (!options.shard.empty() && !options.resume.empty()) {
    throw InputError("", "resume", options.resume.path,
                     "cannot go with shard: a part keeps states, not rows");
  }
  if (watch.parts != nullptr && (!options.shard.empty() || !options.resume.empty())) {
    throw InputError("", options.shard.empty() ? "resume" : "shard", "",
                     "cannot stand in a run whose parts are merged");
  }
  if (watch.parts == nullptr) return;
  for (const StatePart& part : *watch.parts) {
    if (part.point < 0 || part.point >= points) {
      throw InputError("", "parts", "", "hold a point that this run does not have");
    }
  }
}

}  // namespace attnlab
