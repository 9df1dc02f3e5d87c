// The backward pass against central differences where positions matter, each option with each.

#include "attnlab/experiments/gradcheck.h"
#include "catch.h"
#include "experiments/inputs.h"

namespace attnlab {
namespace {

// The options of the set bits.
bool with(int options, int bit) { return (options >> bit & 1) != 0; }

void give_masks(int options, Index keys, MaskOptions& mask) {
  mask.causal = with(options, 0);
  if (with(options, 1)) mask.key_lengths = given<std::int64_t>({2}, {keys, keys - 1});
  if (with(options, 2)) mask.window_left = 2;
  if (with(options, 3)) {
    mask.mask.values = AnyTensor(Tensor<double>({1, keys}, .5));
    for (Index j = 0; j < keys; ++j)
      mask.mask.values->get<double>()[j] = .3 * static_cast<double>(j % 3 - 1);
  }
}

void give_positions(int options, PositionOptions& positions) {
  if (with(options, 0)) positions.rope_theta = 20;
  positions.alibi = with(options, 1);
}

// float64, and one of the others that no option goes with.
std::array<Precision, 2> dtypes(int options) {
  constexpr std::array kOthers = {Precision::float32, Precision::float16, Precision::bfloat16};
  return {Precision::float64, kOthers[static_cast<std::size_t>(options * 797 / 32 % 3)]};
}

TEST_CASE("attention's gradients are those of differences, positions with every other option") {
  for (int on = 0; on < 512; ++on) {
    for (const Precision dtype : dtypes(on)) {
      GradcheckOptions options;
      options.sizes.batch = options.sizes.heads = options.sizes.n = 2;
      options.sizes.kv_heads = with(on, 2) ? 1 : 2;
      options.sizes.m = 3;
      options.sizes.d_k = 4;
      options.sizes.d_v = 2;
      options.sizes.dtype = dtype;
      options.run.seed = static_cast<std::uint64_t>(on);
      give_positions(on, options.positions);
      if (with(on, 3)) options.scores.softcap = 1.5;
      if (with(on, 4)) {
        options.value.past.k = filled({2, *options.sizes.kv_heads, 2, 4}, .3);
        options.value.past.v = filled({2, *options.sizes.kv_heads, 2, 2}, -.7);
      }
      give_masks(on >> 5, with(on, 4) ? 5 : 3, options.mask);
      INFO("options " << on << ", dtype " << static_cast<int>(dtype));
      const GradcheckResult result = gradcheck(options, {});
      CHECK(result.passed);
      CHECK(result.rows[2].norm > .1);
    }
  }
}

TEST_CASE("a layer's gradients are those of differences, positions with every other option") {
  // An eighth of all combinations, in which every few options come in all ways.
  for (int i = 0; i < 256; ++i) {
    const int on = i * 797 % 2048;
    for (const Precision dtype : {Precision::float64, Precision::float32}) {
      GradcheckOptions options;
      options.sizes.batch = 2;
      options.sizes.n = 3;
      options.sizes.heads = 2;
      options.sizes.kv_heads = with(on, 2) ? 1 : 2;
      options.sizes.d_k = 2;
      options.sizes.dtype = dtype;
      options.layer.d_model = 3;
      options.layer.bias = with(on, 4);
      options.layer.qk_norm = with(on, 5);
      options.layer.add_zero_attn = with(on, 6);
      options.run.seed = static_cast<std::uint64_t>(on);
      give_positions(on, options.positions);
      if (with(on, 3)) options.scores.softcap = 1.5;
      give_masks(on >> 7, 3, options.mask);
      INFO("options " << on << ", dtype " << static_cast<int>(dtype));
      CHECK(gradcheck(options, {}).passed);
    }
  }
}

}  // namespace
}  // namespace attnlab
