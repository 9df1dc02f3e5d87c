#include "attnlab/core/draw.h"

#include <algorithm>
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

void place_blocks(const Draw& draw, std::size_t first, std::span<const float> values,
                  std::span<float> out) {
  const std::size_t blocks = draw.blocks();
  std::size_t row = first / blocks * draw.length;
  std::size_t i = first % blocks * 4;
  for (; !values.empty(); values = values.subspan(4)) {
    std::copy_n(values.begin(), std::min<std::size_t>(4, draw.length - i),
                out.subspan(row + i).begin());
    i += 4;
    if (i >= draw.length) {
      i = 0;
      row += draw.length;
    }
  }
}

}  // namespace attnlab
