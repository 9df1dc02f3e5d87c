#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "attnlab/core/philox.h"

namespace attnlab {

// Who draws: no two streams share a counter under the same seed. The value is the last word of the
// Philox counter (the first is the block within a trial, the second and third the 64-bit trial
// number, of which the experiments use one a pair or row).
enum class Stream : std::uint32_t {
  input_q = 1,
  input_k,
  input_v,
  input_x,
  input_memory,
  weight_q,
  weight_k,
  weight_v,
  weight_o,
  bias_q,
  bias_k,
  bias_v,
  bias_o,
  dropout,
  sample_q,  // the experiments' draws, one trial a pair or row
  sample_k,
  sample_v,
  sample_grad_output,
  sample_logits,
  sample_x,
  sample_y,
  sample_weight_q,
  sample_weight_k,
};

// The stream of one point of an experiment (a d_k, or a d_k and a number of keys): points under the
// same seed and role are independent. The role stands in the low 8 bits of the counter's last word
// and the point in the 24 above, so that no two can meet; point 0 is the role itself. Throws
// InputError for a point of 2^24 or more.
Stream stream_at(Stream role, std::uint64_t point);

// The 128 bits of one block.
PhiloxCounter random_block(std::uint64_t seed, Stream stream, std::uint64_t trial,
                           std::uint32_t block);

// Four standard normals of the 128 bits of a block: two Box-Muller pairs (Box and Muller, "A note
// on the generation of random normal deviates", 1958), in float32. Words 0 and 1 give sqrt(-2 ln u)
// (cos a, sin a) with u = (word 0 + 1/2) / 2^32 and a = 2 pi (word 1 + 1/2) / 2^32, words 2 and 3
// the other pair. Written with explicit fused multiply-adds, IEEE square roots and polynomials
// only, so that every compiler and every target gives the same bits. All 32 bits count: the largest
// magnitude is sqrt(-2 ln 2^-33) = 6.7637, and every normal is within 4 units in the last place of
// the exact transform, however small it is.
std::array<float, 4> normals_of(const PhiloxCounter& bits);

// ln u of u = (bits + 1/2) / 2^32, and cos(2 pi u): the parts of normals_of, with its guarantees.
float log_uniform_of(std::uint32_t bits);
float cosine_of_turn(std::uint32_t bits);

// A uniform in the open interval (0, 1) of 32 bits: (bits + 1/2) / 2^32, exact in double.
constexpr double uniform_of(std::uint32_t bits) { return (bits + 0.5) * 0x1p-32; }

// Element i comes from word i % 4 of block i / 4 of trial `trial`, whatever the length. Throws
// InputError when there are more than 2^34 elements, all that one trial has.
//
// Normals are drawn in vectors where the processor has fused multiply-adds (AVX2, AVX-512, NEON):
// the same bits as normals_of, several times faster. On others, as SSE4, they come from normals_of.
void fill_normal(std::span<float> out, std::uint64_t seed, Stream stream, std::uint64_t trial = 0);
void fill_uniform(std::span<double> out, std::uint64_t seed, Stream stream,
                  std::uint64_t trial = 0);

// out [trials, length], row i of it what fill_normal gives of trial first_trial + i: all at once,
// since few values a trial alone fill no vectors.
void fill_normal_trials(std::span<float> out, std::size_t length, std::uint64_t seed, Stream stream,
                        std::uint64_t first_trial);

}  // namespace attnlab
