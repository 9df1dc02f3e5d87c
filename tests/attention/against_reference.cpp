// scaled_dot_product against plain loops, over awkward shapes and every combination of options.

#include "attention/reference_case.h"
#include "share.h"

namespace attnlab {
namespace {

using test::Case;
using test::close;

template <class T>
void check_kernel(const Case& c, Kernel kernel, double tolerance) {
  INFO(test::name_of(c) << (kernel == Kernel::full ? ", full" : ", tiled"));
  test::DrawnCase<T> drawn = test::draw_case<T>(c);
  drawn.settings.kernel = kernel;
  const auto result =
      scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, test::kAllMatrices);
  const reference::Result expected = reference::attend(drawn.call);

  const double scores = tolerance * static_cast<double>(c.d_k);
  CHECK(close(*result.raw_scores, expected.raw_scores, scores));
  CHECK(close(*result.scores, expected.scores, scores));
  CHECK(close(*result.capped_scores, expected.capped_scores, scores));
  CHECK(close(*result.masked_scores, expected.masked_scores, scores));
  CHECK(close(*result.weights, expected.weights, scores));
  CHECK(close(result.output, expected.output, scores));
  CHECK(result.empty_rows == static_cast<Index>(expected.empty_rows));
}

template <class T>
void check(const Case& c, double tolerance) {
  check_kernel<T>(c, Kernel::tiled, tolerance);
  check_kernel<T>(c, Kernel::full, tolerance);
}

TEST_CASE("attention equals plain loops over awkward shapes") {
  const std::vector<Index> lengths = {1, 2, 3, 7, 17, 64, 65};
  for (const Index n : lengths) {
    for (const Index m : lengths) {
      for (const Index d : lengths) {
        Case c{.n = n, .m = m, .d_k = d, .d_v = 1 + 66 % d};
        check<double>(c, 4e-16 * 4);
        c.causal = c.additive = true;
        check<float>(c, 4e-7 * 4);
      }
    }
  }
}

TEST_CASE("attention equals plain loops where keys end in the middle of a tile") {
  for (const Index m : {255, 256, 257, 300, 513, 700}) {
    for (const Index d : {1, 8, 33}) {
      Case c{.heads = 2, .n = 13, .m = m, .d_k = d, .d_v = d + 3};
      check<double>(c, 1e-15);
      c.window = true;
      check<float>(c, 1e-6);
      c.window = false;
      c.causal = c.lengths = true;
      check<float>(c, 1e-6);
    }
  }
}

TEST_CASE("attention equals plain loops under every combination of options") {
  for (int options = 0; options < 256; options += test::kCombinationStep) {
    if ((options & 64) != 0) continue;  // dropout has its own tests
    for (const auto& [heads, kv_heads] : {std::pair<Index, Index>{1, 1}, {6, 2}, {3, 3}, {4, 1}}) {
      for (const auto& [n, m] : {std::pair<Index, Index>{1, 7}, {5, 3}, {66, 70}}) {
        Case c{.batch = 2, .heads = heads, .kv_heads = kv_heads, .n = n, .m = m, .d_k = 5};
        c.d_v = 3;
        c = test::with_options(c, options);
        check<double>(c, 2e-15);
        check<float>(c, 2e-6);
      }
    }
  }
}

}  // namespace
}  // namespace attnlab
