#include "attnlab/stats/entry_trials.h"

#include <array>

#include "attnlab/core/draw.h"
#include "attnlab/stats/entry_transform.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attnlab/stats/entry_trials.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target.h, which includes this file once more for each target.
#include "attnlab/core/draw-inl.h"
#include "attnlab/core/normal-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attnlab::HWY_NAMESPACE {

#if HWY_NATIVE_FMA

struct ToUniform {
  HWY_INLINE void operator()(const Words (&bits)[2], Floats (&values)[2]) const {
    const FloatLanes d;
    const hn::RebindToSigned<FloatLanes> integers;
    for (std::size_t w = 0; w < 2; ++w) {
      const auto centred = hn::Xor(bits[w], hn::Set(WordLanes(), 0x80000000u));
      values[w] = hn::MulAdd(hn::ConvertTo(d, hn::BitCast(integers, centred)),
                             hn::Set(d, kSqrt3 * 0x1p-31f), hn::Set(d, kSqrt3 * 0x1p-32f));
    }
  }
};

struct ToRademacher {
  HWY_INLINE void operator()(const Words (&bits)[2], Floats (&values)[2]) const {
    const FloatLanes d;
    for (std::size_t w = 0; w < 2; ++w) {
      const Floats sign = hn::AndNot(hn::BitCast(d, bits[w]), hn::SignBit(d));
      values[w] = hn::Or(hn::Set(d, 1.0f), sign);
    }
  }
};

struct ToLaplace {
  HWY_INLINE void operator()(const Words (&bits)[2], Floats (&values)[2]) const {
    const FloatLanes d;
    const Words one = hn::Set(WordLanes(), 1u);
    Floats logs[2];
    minus_two_log_uniform(d, {hn::Or(bits[0], one), hn::Or(bits[1], one)}, logs);
    for (std::size_t w = 0; w < 2; ++w) {
      const Floats sign = hn::BitCast(d, hn::ShiftLeft<31>(bits[w]));
      values[w] = hn::Xor(hn::Mul(hn::Set(d, kSqrtHalf * 0.5f), logs[w]), sign);
    }
  }
};

void draw_uniform(const Draw& draw, std::span<float> out) {
  draw_in_vectors(draw, out, VectorByVector<ToUniform>());
}
void draw_rademacher(const Draw& draw, std::span<float> out) {
  draw_in_vectors(draw, out, VectorByVector<ToRademacher>());
}
void draw_laplace(const Draw& draw, std::span<float> out) {
  draw_in_vectors(draw, out, VectorByVector<ToLaplace>());
}

#else

template <float (*entry)(std::uint32_t)>
void draw_words(const Draw& draw, std::span<float> out) {
  draw_by_block(draw, out, [](const PhiloxCounter& bits) {
    return std::array{entry(bits[0]), entry(bits[1]), entry(bits[2]), entry(bits[3])};
  });
}

void draw_uniform(const Draw& draw, std::span<float> out) { draw_words<uniform_entry>(draw, out); }
void draw_rademacher(const Draw& draw, std::span<float> out) {
  draw_words<rademacher_entry>(draw, out);
}
void draw_laplace(const Draw& draw, std::span<float> out) { draw_words<laplace_entry>(draw, out); }

#endif

}  // namespace attnlab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attnlab {
HWY_EXPORT(draw_uniform);
HWY_EXPORT(draw_rademacher);
HWY_EXPORT(draw_laplace);

void fill_standard_trials(std::span<float> out, std::size_t length, const EntryLaw& law,
                          std::uint64_t seed, Stream stream, std::uint64_t first_trial) {
  const Draw draw = checked_draw(out.size(), length, seed, stream, first_trial);
  switch (law.distribution) {
    case Distribution::normal:
      return fill_normal_trials(out, length, seed, stream, first_trial);
    case Distribution::uniform:
      return HWY_DYNAMIC_DISPATCH(draw_uniform)(draw, out);
    case Distribution::rademacher:
      return HWY_DYNAMIC_DISPATCH(draw_rademacher)(draw, out);
    case Distribution::laplace:
      return HWY_DYNAMIC_DISPATCH(draw_laplace)(draw, out);
    case Distribution::student_t:
      for (std::size_t row = 0; row < out.size(); row += length) {
        fill_standard(out.subspan(row, length), law, seed, stream, first_trial++);
      }
  }
}

void fill_entries_trials(std::span<float> out, std::size_t length, const EntryLaw& law,
                         std::uint64_t seed, Stream stream, std::uint64_t first_trial) {
  fill_standard_trials(out, length, law, seed, stream, first_trial);
  apply_scale(out, law);
}

}  // namespace attnlab
#endif
