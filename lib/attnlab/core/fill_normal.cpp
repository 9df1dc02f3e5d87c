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

class ToNormals {
 public:
  // Words 0 and 2 of all vectors first: with what follows they would be one chain of operations
  // that wait for one another, longer than a processor looks ahead.
  template <class Sink>
  HWY_INLINE void operator()(const WordTile& tile, Sink& sink) const {
    HWY_ALIGN float split[WordTile::kVectors * Philox::kWords];
    for (std::size_t v = 0; v < tile.vectors; v += 2) split_two(tile, v, split);
    for (std::size_t v = 0; v < tile.vectors; v += 2) {
      Floats cosines[2], sines[2];
      finish_two(tile, v, split, cosines, sines);
      sink(cosines, sines);
    }
  }

 private:
  static HWY_INLINE void split_two(const WordTile& tile, std::size_t v, float* HWY_RESTRICT split) {
    const FloatLanes d;
    Uniform<FloatLanes> u;
    split_uniform(d, {tile.even(v), tile.even(v + 1)}, u);
    for (std::size_t p = 0; p < 2; ++p) {
      hn::Store(u.t[p], d, split + (v + p) * Philox::kWords);
      hn::Store(u.exponent[p], d, split + (v + p) * Philox::kWords + 2 * Philox::kLanes);
    }
  }
  static HWY_INLINE void finish_two(const WordTile& tile, std::size_t v,
                                    const float* HWY_RESTRICT split, Floats (&cosines)[2],
                                    Floats (&sines)[2]) {
    const FloatLanes d;
    Uniform<FloatLanes> u;
    for (std::size_t p = 0; p < 2; ++p) {
      u.t[p] = hn::Load(d, split + (v + p) * Philox::kWords);
      u.exponent[p] = hn::Load(d, split + (v + p) * Philox::kWords + 2 * Philox::kLanes);
    }
    normals_of_split(d, u, {tile.odd(v), tile.odd(v + 1)}, cosines, sines);
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
