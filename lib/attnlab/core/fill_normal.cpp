#include "attnlab/core/draw.h"
#include "attnlab/core/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/core/fill_normal.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/core/draw-inl.h"
#include "attnlab/core/normal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

#if HWY_NATIVE_FMA

// Words 0 and 2 of all vectors first: what follows is as long a chain of operations that wait for
// one another, and a processor looks ahead over one of them only.
struct ToNormals {
  template <class Sink>
  HWY_INLINE void operator()(const WordTile& tile, Sink& sink) const {
    const FloatLanes d;
    HWY_ALIGN float split[WordTile::kVectors * 4 * Philox::kLanes];
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t v = 0; v < tile.vectors; ++v) {
      float* const to = split + v * 4 * lanes;
      Uniform<FloatLanes> u;
      split_uniform(d, {tile.word(v, 0), tile.word(v, 2)}, u);
      for (std::size_t p = 0; p < 2; ++p) {
        hn::Store(u.t[p], d, to + 2 * p * lanes);
        hn::Store(u.exponent[p], d, to + (2 * p + 1) * lanes);
      }
    }
    for (std::size_t v = 0; v < tile.vectors; ++v) {
      const float* const from = split + v * 4 * lanes;
      Uniform<FloatLanes> u;
      for (std::size_t p = 0; p < 2; ++p) {
        u.t[p] = hn::Load(d, from + 2 * p * lanes);
        u.exponent[p] = hn::Load(d, from + (2 * p + 1) * lanes);
      }
      Floats normals[4];
      normals_of_split(d, u, {tile.word(v, 1), tile.word(v, 3)}, normals);
      sink(normals);
    }
  }
};

void draw_normal(const Draw& draw, std::span<float> out) {
  draw_in_vectors(draw, out, ToNormals());
}

#else

void draw_normal(const Draw& draw, std::span<float> out) { draw_by_block(draw, out, normals_of); }

#endif

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(draw_normal);

void fill_normal_trials(std::span<float> out, std::size_t length, std::uint64_t seed, Stream stream,
                        std::uint64_t first_trial) {
  const Draw draw = checked_draw(out.size(), length, seed, stream, first_trial);
  HWY_DYNAMIC_DISPATCH(draw_normal)(draw, out);
}

void fill_normal(std::span<float> out, std::uint64_t seed, Stream stream, std::uint64_t trial) {
  fill_normal_trials(out, out.size(), seed, stream, trial);
}

}  // namespace attnlab
#endif
