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

struct ToNormals {
  HWY_INLINE void operator()(const Words (&words)[4], Floats (&normals)[4]) const {
    normals_of_lanes(FloatLanes(), words, normals);
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
