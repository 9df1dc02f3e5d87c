// Keys before those of a mask, seen by every query whatever the mask says of the others.

#include "attention/reference_case.h"
#include "attnlab/attention/scaled_dot_product_backward.h"
#include "share.h"

namespace attnlab {
namespace {

using test::Case;
using test::close;
using test::Numbers;

// The case with `open` keys put before the c.m that its mask is about.
template <class T>
test::DrawnCase<T> draw_open(const Case& c, Index open) {
  test::DrawnCase<T> drawn = test::draw_case<T>(c);
  Numbers numbers(3);
  drawn.k = numbers.tensor<T>({c.batch, c.kv_heads, open + c.m, c.d_k});
  drawn.v = numbers.tensor<T>({c.batch, c.kv_heads, open + c.m, c.d_v});
  drawn.mask = drawn.mask.with_open_keys(open);
  reference::Call& call = drawn.call;
  const auto first = static_cast<std::size_t>(open);
  call.m += first;
  call.k = test::doubles(drawn.k);
  call.v = test::doubles(drawn.v);
  call.sees = [sees = call.sees, first](std::size_t b, std::size_t h, std::size_t i,
                                        std::size_t j) {
    return j < first || sees(b, h, i, j - first);
  };
  call.bias = [bias = call.bias, first](std::size_t b, std::size_t h, std::size_t i,
                                        std::size_t j) {
    return j < first ? 0 : bias(b, h, i, j - first);
  };
  return drawn;
}

template <class T>
void check(const Case& c, Index open, Kernel kernel, double tolerance) {
  INFO(test::name_of(c) << ", open " << open << (kernel == Kernel::full ? ", full" : ", tiled"));
  test::DrawnCase<T> drawn = draw_open<T>(c, open);
  drawn.settings.kernel = kernel;
  const auto result =
      scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, test::kAllMatrices);
  const reference::Result expected = reference::attend(drawn.call);
  CHECK(close(*result.masked_scores, expected.masked_scores, tolerance));
  CHECK(close(*result.weights, expected.weights, tolerance));
  CHECK(close(result.output, expected.output, tolerance));
  CHECK(result.empty_rows == 0);

  const auto grad_output = Numbers(4).tensor<T>(result.output.shape());
  const auto got = scaled_dot_product_backward(drawn.q, drawn.k, drawn.v, grad_output, drawn.mask,
                                               drawn.settings);
  const auto gradients = reference::differentiate(drawn.call, test::doubles(grad_output));
  const double sums = tolerance * static_cast<double>((c.n + c.m) * c.heads);
  CHECK(close(*got.grad_q, gradients.grad_q, sums));
  CHECK(close(*got.grad_k, gradients.grad_k, sums));
  CHECK(close(*got.grad_v, gradients.grad_v, sums));
}

TEST_CASE("attention with open keys equals plain loops under every combination of masks") {
  for (int options = 0; options < 256; options += test::kCombinationStep) {
    if ((options & 64) != 0) continue;  // dropout has its own tests
    for (const auto& [n, m] : {std::pair<Index, Index>{1, 7}, {5, 3}, {30, 33}}) {
      const Case sizes{.batch = 2, .heads = 4, .kv_heads = 2, .n = n, .m = m, .d_k = 5, .d_v = 3};
      const Case c = test::with_options(sizes, options);
      for (const Index open : {1, 2}) {
        check<double>(c, open, Kernel::tiled, 1e-14);
        check<double>(c, open, Kernel::full, 1e-14);
        check<float>(c, open, Kernel::tiled, 2e-6);
      }
    }
  }
}

TEST_CASE("open keys before a window that begins tiles later") {
  const Case c{.heads = 2,
               .kv_heads = 1,
               .n = 40,
               .m = 700,
               .d_k = 5,
               .d_v = 3,
               .causal = true,
               .window = true,
               .alibi = true};
  check<double>(c, 2, Kernel::tiled, 1e-14);
  check<double>(c, 2, Kernel::full, 1e-14);
}

TEST_CASE("a mask behind open keys says of its keys what it said without") {
  for (int options = 0; options < 64; ++options) {
    const Case sizes{.batch = 2, .heads = 2, .kv_heads = 2, .n = 4, .m = 6};
    Case c = test::with_options(sizes, options % 32);
    c.alibi = options >= 32;
    const Mask mask = test::draw_case<double>(c).mask;
    const Mask open = mask.with_open_keys(1).with_open_keys(2);
    CHECK(open.keys() == 9);
    for (Index row = 0; row < 2 * 2 * 4; ++row) {
      const Index b = row / 8, h = row / 4 % 2, i = row % 4;
      const KeyRange range = open.key_range(b, i);
      for (Index j = 0; j < 9; ++j) {
        const bool seen = j < 3 || mask.may_attend(b, h, i, j - 3);
        CHECK(open.may_attend(b, h, i, j) == seen);
        CHECK((!seen || (range.first <= j && j < range.last)));
        const bool within = range.first <= j && j < range.last;
        CHECK((seen || !within || open.has_elementwise()));
        CHECK(open.bias<double>(b, h, i, j) == (j < 3 ? 0 : mask.bias<double>(b, h, i, j - 3)));
      }
      for (Index first = range.first; first <= range.last; ++first) {
        for (Index last = first; last <= range.last; ++last) {
          const auto count = static_cast<std::size_t>(last - first);
          std::vector<std::uint8_t> seen(count, 9);
          std::vector<double> bias(count, 9);
          open.read_row<double>(b, h, i, {first, last}, seen, bias);
          for (std::size_t x = 0; x < count; ++x) {
            const Index j = first + static_cast<Index>(x);
            CHECK(seen[x] == (open.may_attend(b, h, i, j) ? 1 : 0));
            if (c.alibi) continue;  // which read_row leaves out
            CHECK(bias[x] == (open.has_additive() ? open.bias<double>(b, h, i, j) : 9));
          }
        }
      }
    }
  }
}

TEST_CASE("a row that only open keys are left to see is no empty row") {
  Mask mask(1, 1, 2, 3);
  mask.set_key_lengths({0});
  const Tensor<double> q({1, 1, 2, 1}, 1), k({1, 1, 4, 1}, {1, 5, 5, 5}),
      v({1, 1, 4, 1}, {2, 9, 9, 9});
  for (const Kernel kernel : {Kernel::full, Kernel::tiled}) {
    const auto result =
        scaled_dot_product(q, k, v, mask.with_open_keys(1), {.kernel = kernel}, {"weights"});
    CHECK(test::doubles(result.output) == std::vector<double>{2, 2});
    CHECK(test::doubles(*result.weights) == std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0});
    CHECK(result.empty_rows == 0);
  }
}

}  // namespace
}  // namespace attnlab
