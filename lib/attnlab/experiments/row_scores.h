#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attnlab/core/buffer.h"
#include "attnlab/core/watch.h"
#include "attnlab/experiments/row_sampler.h"

namespace attnlab {

// Numbers that are written before they are read.
template <class T>
class Numbers {
 public:
  explicit Numbers(std::size_t count) : memory_(count, sizeof(T)), count_(count) {}
  std::size_t size() const { return count_; }
  std::span<T> all() const { return {static_cast<T*>(memory_.data()), count_}; }
  std::span<T> part(std::size_t first, std::size_t count) const {
    return all().subspan(first, count);
  }

 private:
  Buffer memory_;
  std::size_t count_ = 0;
};

// Draws the rows of one block, and q.k of each with its n keys in float64: keys of its own, or
// those that all rows of the block share, which are widened once for several queries.
class RowScores {
 public:
  struct Shape {
    std::size_t n, d;
    bool shared;   // keys
    bool lengths;  // of keys, whether they are wanted
  };

  // Draws the keys that the rows of block number `block` share, if they do. Nothing is left whole
  // once the run is cancelled.
  RowScores(const Shape& shape, const RowSampler& sampler, std::uint64_t block, const Watch& watch);

  // Draws the rows from `trial` on, at most up to `last`; how many they are.
  std::size_t draw(std::uint64_t trial, std::uint64_t last);

  // Of one of them, counted from 0.
  std::span<const float> query(std::size_t row) const { return q_.part(row * shape_.d, shape_.d); }
  std::span<const double> scores(std::size_t row) const {
    return scores_.part(row * shape_.n, shape_.n);
  }
  std::span<const double> key_lengths() const { return key_lengths_.all(); }

  // What is kept in memory.
  static std::uint64_t bytes(const Shape& shape);

 private:
  void draw_own(std::uint64_t trial);
  void draw_shared(std::uint64_t trial, std::size_t rows);
  void measure_keys(std::span<const float> k, std::size_t first);
  template <class F>
  void for_each_chunk(std::size_t most, const F& f) const;

  Shape shape_;
  const RowSampler& sampler_;
  const Watch& watch_;
  Numbers<float> q_, k_;
  Numbers<double> wide_q_, scores_, key_lengths_;
};

}  // namespace attnlab
