#include "attnlab/core/draw.h"

#include <cassert>
#include <string>

#include "attnlab/core/error.h"

namespace attnlab {

Draw checked_draw([[maybe_unused]] std::size_t count, std::size_t length, std::uint64_t seed,
                  Stream stream, std::uint64_t first_trial) {
  constexpr std::uint64_t kMost = std::uint64_t{4} << 32;
  if (length > kMost) {
    throw InputError("", "", std::to_string(length), "at most 2^34 values can be drawn at once");
  }
  assert(length == 0 ? count == 0 : count % length == 0);
  return {seed, stream, first_trial, length};
}

}  // namespace attnlab
