// What is special to the tiled kernel: its targets, its accuracy, and that each row is alone.

#include "attnlab/attention/kernel/tiled.h"

#include <hwy/targets.h>

#include <cmath>

#include "attention/accuracy.h"
#include "attention/reference_case.h"
#include "attnlab/attention/kernel/full.h"
#include "attnlab/core/random.h"

namespace attnlab {
namespace {

using test::Case;
using test::normal_case;
using test::same_bits;
using test::squares_off;

template <class T>
AttentionResult<T> attend_with(const test::DrawnCase<T>& drawn, Kernel kernel,
                               const Request& want = {}) {
  AttentionSettings settings = drawn.settings;
  settings.kernel = kernel;
  return scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, settings, want);
}

// Keys that grow, so that every few tiles a score is far above those before it, and others not.
template <class T>
void grow_keys(test::DrawnCase<T>& drawn) {
  const Index m = drawn.k.shape()[2], d = drawn.k.shape()[3];
  for (Index i = 0; i < drawn.k.size(); ++i) {
    const Index growth = 1 + i / d % m / 10;
    drawn.k.data()[i] *= static_cast<T>(growth);
  }
}

TEST_CASE("the tiled kernel is no less exact than the plain path on the whole") {
  double tiled_squares = 0, full_squares = 0;
  for (const Index n : {1, 7, 64, 130}) {
    for (const Index m : {1, 9, 100, 256, 300, 1000}) {
      for (const Index d : {1, 3, 16, 50, 64, 128}) {
        const auto exact = normal_case<double>(n, m, d);
        const auto single = normal_case<float>(n, m, d);
        const Tensor<double> truth = attend_with(exact, Kernel::full).output;
        tiled_squares += squares_off(attend_with(single, Kernel::tiled).output, truth);
        full_squares += squares_off(attend_with(single, Kernel::full).output, truth);
      }
    }
  }
  CHECK(tiled_squares <= full_squares);
}

TEST_CASE("asking for weights and steps changes no bit of a tiled output, nor does the block") {
  for (const bool causal : {false, true}) {
    const auto check = [&](auto drawn, bool grows) {
      using T = std::remove_cvref_t<decltype(drawn.q.data()[0])>;
      if (causal) drawn.mask.set_causal();
      if (grows) grow_keys(drawn);
      const auto alone = attend_with(drawn, Kernel::tiled);
      CHECK(same_bits(alone.output, attend_with(drawn, Kernel::tiled, {"weights"}).output));
      const auto all = attend_with(drawn, Kernel::tiled, test::kAllMatrices);
      CHECK(same_bits(alone.output, all.output));
      CHECK(same_bits(*all.weights, *attend_with(drawn, Kernel::tiled, {"weights"}).weights));

      const Values<T> values(drawn.v);
      const KernelCall<T> call{drawn.q, drawn.k, values, drawn.mask, drawn.settings};
      for (const Index rows : {1, 5, 6, 50, 192}) {
        AttentionResult<T> result;
        result.output = Tensor<T>(alone.output.shape());
        for (Index h = 0; h < 2; ++h) {
          for (Index first = 0; first < 200; first += rows) {
            const RowBlock block{0, h, first, std::min(rows, 200 - first)};
            attend_tiled(call, block, result);
          }
        }
        CHECK(same_bits(alone.output, result.output));
      }
    };
    for (const bool grows : {false, true}) {
      // Widths of whole vectors, whose output is divided in registers, and others.
      for (const Index d : {20, 32}) {
        check(normal_case<float>(200, 600, d), grows);
        check(normal_case<double>(200, 600, d), grows);
      }
    }
  }
}

TEST_CASE("scores far above those of the first keys are weighed right") {
  for (const bool causal : {false, true}) {
    for (const Index m : {17, 40, 300, 700}) {
      INFO(m << " keys" << (causal ? ", causal" : ""));
      auto drawn = normal_case<float>(23, m, 20);
      auto exact = normal_case<double>(23, m, 20);
      grow_keys(drawn);
      grow_keys(exact);
      if (causal) {
        drawn.mask.set_causal();
        drawn.mask.set_offset(m - 23);
        exact.mask.set_causal();
        exact.mask.set_offset(m - 23);
      }
      const auto result = attend_with(drawn, Kernel::tiled, {"weights"});
      const auto truth = attend_with(exact, Kernel::full, {"weights"});
      const auto plain = attend_with(drawn, Kernel::full, {"weights"});
      // A few rows of the largest scores decide about all: what is far off shows, not their chance.
      CHECK(squares_off(result.output, truth.output) <=
            2.5 * 2.5 * squares_off(plain.output, truth.output));
      CHECK(squares_off(*result.weights, *truth.weights) <=
            2.5 * 2.5 * squares_off(*plain.weights, *truth.weights));
    }
  }
}

TEST_CASE("V near the largest numbers does not overflow where its mean does not") {
  auto drawn = normal_case<float>(7, 300, 4);
  drawn.settings.scale = 8;  // scores that rise by far more than a factor of 100 in weight
  for (Index i = 0; i < drawn.v.size(); ++i) drawn.v.data()[i] = 1e36f;
  const auto result = attend_with(drawn, Kernel::tiled);
  for (const float output : std::as_const(result.output).values()) {
    CHECK(output == Approx(1e36f).epsilon(1e-5));
  }
}

TEST_CASE("every target of the processor gives what plain loops give") {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  CHECK_FALSE(targets.empty());
  Case c{.heads = 2, .kv_heads = 1, .n = 21, .m = 300, .d_k = 19, .d_v = 13};
  c.additive = c.alibi = true;
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    if (std::string(tiled_target()) != hwy::TargetName(target)) continue;  // not built for it
    const auto drawn = test::draw_case<float>(c);
    const reference::Result expected = reference::attend(drawn.call);
    const auto result = attend_with(drawn, Kernel::tiled, {"weights"});
    CHECK(test::close(result.output, expected.output, 2e-6));
    CHECK(test::close(*result.weights, expected.weights, 2e-6));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE(
    "a tile that the mask hides keeps its weights of 0 however small the others' scores are") {
  // The largest score is such that e^-max overflows float32.
  constexpr Index kKeys = 300, kHidden = 256;
  for (const float score : {-80.0f, -88.5f, -88.7f, -89.0f, -200.0f, -1e6f}) {
    Tensor<float> q({1, 1, 1, 1}), k({1, 1, kKeys, 1}), v({1, 1, kKeys, 1});
    q[0] = 1;
    Tensor<bool> seen({1, 1, 1, kKeys});
    for (Index j = 0; j < kKeys; ++j) {
      k[j] = score;
      v[j] = 3;
      seen[j] = j >= kHidden;
    }
    Mask mask(1, 1, 1, kKeys);
    mask.set_boolean(seen);
    AttentionSettings settings;
    settings.scale = 1;
    settings.kernel = Kernel::tiled;
    const auto result = scaled_dot_product(q, k, v, mask, settings, {"weights"});
    INFO("score " << score);
    CHECK(result.output[0] == Approx(3));
    for (Index j = 0; j < kKeys; ++j) {
      CHECK((*result.weights)[j] == Approx(j < kHidden ? 0 : 1.0 / (kKeys - kHidden)));
    }
  }
}

TEST_CASE("a score of -infinity is no empty row, and NaN outside the mask is not lost") {
  auto drawn = normal_case<float>(7, 300, 4);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  drawn.q.data()[0] = std::numeric_limits<float>::quiet_NaN();  // query 0 of head 0
  drawn.k.data()[299 * 4] = kInf;                               // the last key of head 0
  const auto result = attend_with(drawn, Kernel::tiled, {"weights"});
  const auto full = attend_with(drawn, Kernel::full, {"weights"});
  for (Index i = 0; i < result.output.size(); ++i) {
    INFO(i);
    CHECK(std::isnan(result.output.data()[i]) == std::isnan(full.output.data()[i]));
  }
  CHECK(result.empty_rows == 0);
}

TEST_CASE("rows that see no key are counted once, where their group's keys end with a tile too") {
  constexpr Index kKeys = 300;
  for (const Index offset : {0, 249, 250, 251}) {  // the first six see up to 256 keys with 250
    auto drawn = normal_case<float>(12, kKeys, 16);
    drawn.mask.set_causal();
    drawn.mask.set_offset(offset);
    Tensor<bool> seen({1, 1, 12, kKeys});
    for (Index i = 0; i < seen.size(); ++i) seen[i] = i / kKeys != 0;
    drawn.mask.set_boolean(seen);
    INFO("offset " << offset);
    CHECK(attend_with(drawn, Kernel::tiled, {"weights"}).empty_rows ==
          attend_with(drawn, Kernel::full, {"weights"}).empty_rows);
  }
}

}  // namespace
}  // namespace attnlab
