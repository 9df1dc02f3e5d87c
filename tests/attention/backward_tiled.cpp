// What is special to the tiled backward pass: it agrees with the plain path on every target and
// under every mask, is as exact, and shares out its work in a way that no thread count changes.

#include "attnlab/attention/kernel/backward_tiled.h"

#include <hwy/targets.h>

#include <cmath>
#include <string>

#include "attention/accuracy.h"
#include "attention/reference_case.h"
#include "attnlab/attention/kernel/tiled.h"
#include "attnlab/attention/scaled_dot_product_backward.h"
#include "attnlab/core/random.h"
#include "share.h"

namespace attnlab {
namespace {

using test::Case;
using test::normal_case;
using test::same_bits;
using test::squares_off;
using test::with_options;

template <class T>
Tensor<T> cotangent(const test::DrawnCase<T>& drawn) {
  const Shape& q = drawn.q.shape();
  return test::Numbers(5).tensor<T>({q[0], q[1], q[2], drawn.v.shape()[3]});
}

template <class T>
AttentionGradients<T> differentiate_with(const test::DrawnCase<T>& drawn,
                                         const Tensor<T>& grad_output, Kernel kernel,
                                         Index threads = 1) {
  AttentionSettings settings = drawn.settings;
  settings.kernel = kernel;
  settings.threads = threads;
  return scaled_dot_product_backward(drawn.q, drawn.k, drawn.v, grad_output, drawn.mask, settings);
}

template <class T, class F>
void for_each_gradient(const AttentionGradients<T>& a, const AttentionGradients<T>& b, const F& f) {
  f("grad_q", *a.grad_q, *b.grad_q);
  f("grad_k", *a.grad_k, *b.grad_k);
  f("grad_v", *a.grad_v, *b.grad_v);
}

template <class T>
void check_against_full(const Case& c, double tolerance) {
  const auto drawn = test::draw_case<T>(c);
  const Tensor<T> grad_output = cotangent(drawn);
  const auto tiled = differentiate_with(drawn, grad_output, Kernel::tiled);
  const auto full = differentiate_with(drawn, grad_output, Kernel::full);
  for_each_gradient(tiled, full, [&](const char* name, const auto& got, const auto& expected) {
    INFO(test::name_of(c) << ", " << name);
    CHECK(test::close(got, test::doubles(expected), tolerance));
  });
}

TEST_CASE("the tiled backward pass agrees with the plain path around the edges of its tiles") {
  // Blocks have 64 queries and tiles 96 keys; panels of vectors 4 to 64 columns.
  for (const Index n : {1, 6, 63, 64, 65, 200}) {
    for (const Index m : {1, 5, 95, 96, 97, 300}) {
      for (const Index d : {1, 3, 8, 33}) {
        Case c{.heads = 2, .kv_heads = 1, .n = n, .m = m, .d_k = d, .d_v = 1 + 31 % d};
        check_against_full<double>(c, 1e-12);
        c.causal = true;
        check_against_full<float>(c, 2e-4);
      }
    }
  }
}

TEST_CASE("the tiled backward pass agrees with the plain path in the blocks of large heads") {
  // K and V of 8 MB, where blocks have up to 192 queries; fewer where the library is slow.
  const Index n = test::kCombinationStep == 1 ? 200 : 70;
  Case c{.heads = 1, .kv_heads = 1, .n = n, .m = 600, .d_k = 1700, .d_v = 1800};
  check_against_full<float>(c, 1e-3);  // sums over d_v of 1800
  c.causal = c.boolean = c.alibi = true;
  check_against_full<double>(c, 1e-12);
}

TEST_CASE("the tiled backward pass agrees with the plain path under every combination of masks") {
  for (int options = 0; options < 256; options += test::kCombinationStep) {
    const Case c{.batch = 2, .heads = 4, .kv_heads = 2, .n = 70, .m = 210, .d_k = 5, .d_v = 3};
    check_against_full<double>(with_options(c, options), 1e-12);
    check_against_full<float>(with_options(c, options), 2e-4);
  }
}

template <class T>
void check_targets(double tolerance) {
  Case c{.heads = 2, .kv_heads = 1, .n = 71, .m = 130, .d_k = 19, .d_v = 13};
  c.causal = c.additive = c.alibi = true;
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  int ran = 0;
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    if (std::string(tiled_target()) != hwy::TargetName(target)) continue;  // not built for it
    check_against_full<T>(c, tolerance);
    ++ran;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  CHECK(ran > 0);
}

TEST_CASE("every target of the processor gives the gradients of the plain path") {
  check_targets<float>(1e-4);
  check_targets<double>(1e-12);
}

TEST_CASE("tiled gradients are no less exact than the plain path's on the whole") {
  double tiled_squares = 0, full_squares = 0;
  for (const Index n : {1, 7, 64, 130}) {
    for (const Index m : {1, 9, 100, 300, 1000}) {
      for (const Index d : {1, 3, 16, 50, 64, 128}) {
        const auto exact = normal_case<double>(n, m, d);
        const auto single = normal_case<float>(n, m, d);
        const Tensor<float> grad_output = cotangent(single);
        const auto truth =
            differentiate_with(exact, AnyTensor(grad_output).cast<double>(), Kernel::full);
        const auto tiled = differentiate_with(single, grad_output, Kernel::tiled);
        const auto full = differentiate_with(single, grad_output, Kernel::full);
        const auto compare = [&](const auto& got, const auto& plain, const auto& right) {
          tiled_squares += squares_off(got, right);
          full_squares += squares_off(plain, right);
        };
        compare(*tiled.grad_q, *full.grad_q, *truth.grad_q);
        compare(*tiled.grad_k, *full.grad_k, *truth.grad_k);
        compare(*tiled.grad_v, *full.grad_v, *truth.grad_v);
      }
    }
  }
  INFO("squares " << tiled_squares * 1e9 << " and " << full_squares * 1e9);
  CHECK(tiled_squares <= full_squares);
}

template <class T>
void check_threads(const Case& c) {
  const auto drawn = test::draw_case<T>(c);
  const Tensor<T> grad_output = cotangent(drawn);
  const auto one = differentiate_with(drawn, grad_output, Kernel::tiled, 1);
  for (const Index threads : {2, 3}) {
    const auto many = differentiate_with(drawn, grad_output, Kernel::tiled, threads);
    for_each_gradient(one, many, [&](const char* name, const auto& a, const auto& b) {
      INFO(test::name_of(c) << ", " << threads << " threads, " << name);
      CHECK(same_bits(a, b));
    });
  }
}

TEST_CASE("tiled gradients are the same bits for any number of threads, one head too") {
  // Widths that are whole vectors, whose first share needs no memory of its own, and others.
  for (const Index d : {20, 16}) {
    for (const auto& [heads, kv_heads] : {std::pair<Index, Index>{1, 1}, {6, 2}, {9, 9}}) {
      Case c{.heads = heads, .kv_heads = kv_heads, .n = 650, .m = 170, .d_k = d, .d_v = d};
      check_threads<float>(c);
      c.causal = c.boolean = c.dropout = true;
      check_threads<double>(c);
    }
  }
}

// Scores beyond the range of T, from inputs that are within it.
TEST_CASE("rows that overflow are those of the plain path, and touch no other") {
  auto drawn = normal_case<float>(70, 100, 4);
  drawn.mask.set_causal();
  const Tensor<float> grad_output = cotangent(drawn);
  const auto clean = differentiate_with(drawn, grad_output, Kernel::tiled);
  drawn.q.data()[69 * 4] = 3e38F;  // the last query of head 0
  drawn.k.data()[69 * 4] = 3e38F;  // a key that it alone sees
  const auto tiled = differentiate_with(drawn, grad_output, Kernel::tiled);
  const auto full = differentiate_with(drawn, grad_output, Kernel::full);
  bool any = false;
  for_each_gradient(tiled, full, [&](const char* name, const auto& got, const auto& expected) {
    INFO(name);
    for (Index i = 0; i < got.size(); ++i) {
      REQUIRE(std::isnan(got[i]) == std::isnan(expected[i]));
      any = any || std::isnan(got[i]);
    }
  });
  CHECK(any);
  const auto bytes = sizeof(float) * 69 * 4;
  CHECK(std::memcmp(tiled.grad_q->data(), clean.grad_q->data(), bytes) == 0);
}

}  // namespace
}  // namespace attnlab
