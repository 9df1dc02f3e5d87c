#include "attnlab/core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "attnlab/core/draw.h"
#include "attnlab/core/error.h"
#include "attnlab/core/normal_constants.h"

// The transform from bits to normals uses nothing that a compiler, a math library or a vector unit
// may do differently: integer operations, conversions of int32, and the IEEE operations +, *, fma
// and square root. No product is added to anything outside std::fma, so there is nothing to
// contract. Each choice is a select, so that a vector lane computes the same bits.

namespace attnlab {
namespace {

// The polynomial with the given coefficients, highest power first, at x.
template <std::size_t size>
float polynomial(const std::array<float, size>& coefficients, float x) {
  float sum = coefficients[0];
  for (std::size_t i = 1; i < size; ++i) sum = std::fma(sum, x, coefficients[i]);
  return sum;
}

float sine_of_quarter_turns(float x) {
  return std::fma(x, normal::kHalfPi, x * polynomial(normal::kSineRest, x * x));
}

float cosine_of_quarter_turns(float x) { return polynomial(normal::kCosine, x * x); }

// ln u for u = (bits + 1/2) / 2^32.
float log_of_uniform(std::uint32_t bits) {
  // Above 1/2 the float nearest to u forgets most of 1 - u, so that u - 1 is kept there instead.
  const auto centred = static_cast<std::int32_t>(bits);  // bits, or bits - 2^32 in the upper half
  const bool upper = centred < 0;
  const float offset = std::fma(static_cast<float>(centred), 0x1p-32f, 0x1p-33f);
  const float u = upper ? 1.0f + offset : offset;
  // u = m 2^e with m in [sqrt(1/2), sqrt(2)).
  const auto u_bits = std::bit_cast<std::int32_t>(u);
  const std::int32_t e = (u_bits - normal::kSqrtHalf) >> 23;
  const auto m = std::bit_cast<float>(u_bits - e * (1 << 23));
  // m - 1; in the upper half e is 0 or -1, and u - 1 gives it without the rounding of u.
  const float t_upper = e == 0 ? offset : std::fma(2.0f, offset, 1.0f);
  const float t = upper ? t_upper : m - 1.0f;
  const float log_m = std::fma(t * t, polynomial(normal::kLog1pQuotient, t), t);
  return std::fma(static_cast<float>(e), normal::kLn2, log_m);
}

// sqrt(-2 ln u).
float radius_of(std::uint32_t bits) { return std::sqrt(-2.0f * log_of_uniform(bits)); }

struct Direction {
  float cosine, sine;
};

// The point of the unit circle at (bits + 1/2) / 2^32 turns.
Direction direction_of(std::uint32_t bits) {
  // The nearest quarter turn, exactly, and what is left of it in [-1/2, 1/2] quarter turns.
  const std::uint32_t quarter = (bits + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(bits - (quarter << 30));
  const float x = std::fma(static_cast<float>(rest), 0x1p-30f, 0x1p-31f);
  const float s = sine_of_quarter_turns(x);
  const float c = cosine_of_quarter_turns(x);
  const bool odd = (quarter & 1) != 0;
  const float cosine = odd ? s : c;
  const float sine = odd ? c : s;
  return {((quarter + 1) & 2) != 0 ? -cosine : cosine, (quarter & 2) != 0 ? -sine : sine};
}

}  // namespace

PhiloxCounter random_block(std::uint64_t seed, Stream stream, std::uint64_t trial,
                           std::uint32_t block) {
  return philox4x32({block, static_cast<std::uint32_t>(trial),
                     static_cast<std::uint32_t>(trial >> 32), static_cast<std::uint32_t>(stream)},
                    philox_key(seed));
}

std::array<float, 4> normals_of(const PhiloxCounter& bits) {
  const float radius0 = radius_of(bits[0]);
  const float radius1 = radius_of(bits[2]);
  const Direction direction0 = direction_of(bits[1]);
  const Direction direction1 = direction_of(bits[3]);
  return {radius0 * direction0.cosine, radius0 * direction0.sine, radius1 * direction1.cosine,
          radius1 * direction1.sine};
}

float log_uniform_of(std::uint32_t bits) { return log_of_uniform(bits); }

float cosine_of_turn(std::uint32_t bits) { return direction_of(bits).cosine; }

Stream stream_at(Stream role, std::uint64_t point) {
  constexpr int kRoleBits = 8;
  constexpr std::uint64_t kPoints = std::uint64_t{1} << (32 - kRoleBits);
  static_assert(static_cast<std::uint32_t>(Stream::sample_weight_k) < 1u << kRoleBits);
  if (point >= kPoints) {
    throw InputError("", "", std::to_string(point), "an experiment has at most 2^24 points");
  }
  return static_cast<Stream>(static_cast<std::uint32_t>(role) | static_cast<std::uint32_t>(point)
                                                                    << kRoleBits);
}

void fill_uniform(std::span<double> out, std::uint64_t seed, Stream stream, std::uint64_t trial) {
  const Draw draw = checked_draw(out.size(), out.size(), seed, stream, trial);
  draw_by_block(draw, out, [](const PhiloxCounter& bits) {
    std::array<double, 4> uniforms{};
    std::transform(bits.begin(), bits.end(), uniforms.begin(), uniform_of);
    return uniforms;
  });
}

}  // namespace attnlab
