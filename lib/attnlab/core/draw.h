#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attnlab/core/random.h"

namespace attnlab {

// What is drawn: the first `length` values of each of consecutive trials, row by row. A trial's
// blocks of four words have numbers of 32 bits.
struct Draw {
  std::uint64_t seed = 0;
  Stream stream{};
  std::uint64_t trial = 0;  // the first
  std::size_t length = 0;

  // Blocks a trial.
  std::size_t blocks() const { return length / 4 + (length % 4 != 0 ? 1 : 0); }
};

// The draw of `count` values, [trials, length]. Throws InputError when `length` is more than one
// trial has, 2^34. `count` is a multiple of it.
Draw checked_draw(std::size_t count, std::size_t length, std::uint64_t seed, Stream stream,
                  std::uint64_t first_trial);

// Fills out [trials, length] block by block: `transform` makes four values of the words of one.
template <class T, class Transform>
void draw_by_block(const Draw& draw, std::span<T> out, const Transform& transform) {
  std::uint64_t trial = draw.trial;
  for (std::size_t row = 0; row < out.size(); row += draw.length, ++trial) {
    for (std::size_t i = 0; i < draw.length; i += 4) {
      const auto block = static_cast<std::uint32_t>(i / 4);
      const auto values = transform(random_block(draw.seed, draw.stream, trial, block));
      std::copy_n(values.begin(), std::min<std::size_t>(4, draw.length - i),
                  out.subspan(row + i).begin());
    }
  }
}

}  // namespace attnlab
