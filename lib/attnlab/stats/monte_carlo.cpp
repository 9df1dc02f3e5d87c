#include "attnlab/stats/monte_carlo.h"

#include <string>

#include "attnlab/core/error.h"

namespace attnlab {

BlockRange shard_range(std::uint64_t blocks, std::uint64_t shard, std::uint64_t shards) {
  if (shard < 1 || shard > shards) {
    throw InputError("", "shard", std::to_string(shard) + "/" + std::to_string(shards),
                     "must be I/N with 1 <= I <= N");
  }
  // blocks * shard / shards without overflow.
  const auto end = [&](std::uint64_t parts) {
    return blocks / shards * parts + std::min(parts, blocks % shards);
  };
  return {end(shard - 1), end(shard)};
}

}  // namespace attnlab
