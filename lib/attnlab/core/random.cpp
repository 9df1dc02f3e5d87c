#include "attnlab/core/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "attnlab/core/error.h"

// The transform from bits to normals uses nothing that a compiler, a math library or a vector unit
// may do differently: integer operations, conversions of int32, and the IEEE operations +, *, fma
// and square root. No product is added to anything outside std::fma, so there is nothing to
// contract. Each choice is a select, so that a vector lane computes the same bits.

namespace attnlab {
namespace {

// q with ln(1 + t) = t + t^2 q(t) on [sqrt(1/2) - 1, sqrt(2) - 1]. Minimax in relative error of
// the logarithm, 3.5e-8 as rounded here (0.6 of a float32 rounding; the square root halves it).
float log1p_quotient(float t) {
  float q = 0x1.65c7b4p-4f;
  q = std::fma(q, t, -0x1.2504acp-3f);
  q = std::fma(q, t, 0x1.318520p-3f);
  q = std::fma(q, t, -0x1.535d2ep-3f);
  q = std::fma(q, t, 0x1.98d2c0p-3f);
  q = std::fma(q, t, -0x1.00049ap-2f);
  q = std::fma(q, t, 0x1.5556f4p-2f);
  return std::fma(q, t, -0x1.fffffap-2f);
}

// sin(pi/2 x) on [-1/2, 1/2]: x (pi/2 + s(x^2)), with pi/2 rounded to float32 and its remainder in
// the first coefficient of s. Minimax, relative error 3.4e-9 as rounded here.
float sine_of_quarter_turns(float x) {
  const float z = x * x;
  float s = -0x1.2da156p-8f;
  s = std::fma(s, z, 0x1.465eeap-4f);
  s = std::fma(s, z, -0x1.4abbbap-1f);
  s = std::fma(s, z, -0x1.a32bc6p-25f);
  return std::fma(x, 0x1.921fb6p+0f, x * s);
}

// cos(pi/2 x) on [-1/2, 1/2]: 1 + x^2 c(x^2). Minimax, relative error 4.4e-10 as rounded here.
float cosine_of_quarter_turns(float x) {
  const float z = x * x;
  float c = 0x1.d4f7eep-11f;
  c = std::fma(c, z, -0x1.55b2b6p-6f);
  c = std::fma(c, z, 0x1.03c1b0p-2f);
  c = std::fma(c, z, -0x1.3bd3ccp+0f);
  return std::fma(c, z, 1.0f);
}

// ln u for u = (bits + 1/2) / 2^32.
float log_of_uniform(std::uint32_t bits) {
  // Above 1/2 the float nearest to u forgets most of 1 - u, so that u - 1 is kept there instead.
  const auto centred = static_cast<std::int32_t>(bits);  // bits, or bits - 2^32 in the upper half
  const bool upper = centred < 0;
  const float offset = std::fma(static_cast<float>(centred), 0x1p-32f, 0x1p-33f);
  const float u = upper ? 1.0f + offset : offset;
  // u = m 2^e with m in [sqrt(1/2), sqrt(2)).
  constexpr std::int32_t kSqrtHalf = 0x3f3504f3;
  const auto u_bits = std::bit_cast<std::int32_t>(u);
  const std::int32_t e = (u_bits - kSqrtHalf) >> 23;
  const auto m = std::bit_cast<float>(u_bits - e * (1 << 23));
  // m - 1; in the upper half e is 0 or -1, and u - 1 gives it without the rounding of u.
  const float t_upper = e == 0 ? offset : std::fma(2.0f, offset, 1.0f);
  const float t = upper ? t_upper : m - 1.0f;
  const float log_m = std::fma(t * t, log1p_quotient(t), t);
  return std::fma(static_cast<float>(e), 0x1.62e430p-1f, log_m);
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

// Calls write(first, count, bits) for each block: `count` elements from `first` on are its words.
template <class Write>
void for_each_block(std::size_t count, std::uint64_t seed, Stream stream, std::uint64_t trial,
                    const Write& write) {
  constexpr std::uint64_t kMost = std::uint64_t{4} << 32;
  if (count > kMost) {
    throw InputError("", "", std::to_string(count), "at most 2^34 values can be drawn at once");
  }
  for (std::size_t first = 0; first < count; first += 4) {
    const PhiloxCounter bits =
        random_block(seed, stream, trial, static_cast<std::uint32_t>(first / 4));
    write(first, std::min<std::size_t>(4, count - first), bits);
  }
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

void fill_normal(std::span<float> out, std::uint64_t seed, Stream stream, std::uint64_t trial) {
  for_each_block(out.size(), seed, stream, trial,
                 [&](std::size_t first, std::size_t count, const PhiloxCounter& bits) {
                   std::copy_n(normals_of(bits).begin(), count, out.subspan(first).begin());
                 });
}

void fill_uniform(std::span<double> out, std::uint64_t seed, Stream stream, std::uint64_t trial) {
  for_each_block(out.size(), seed, stream, trial,
                 [&](std::size_t first, std::size_t count, const PhiloxCounter& bits) {
                   std::transform(bits.begin(), bits.begin() + count, out.subspan(first).begin(),
                                  uniform_of);
                 });
}

}  // namespace attnlab
