// Linear biases: the published slopes, and what is theirs alone as a part of the mask.

#include "attnlab/attention/alibi.h"

#include "attention/accuracy.h"
#include "attention/reference_case.h"
#include "attnlab/attention/scaled_dot_product_backward.h"

namespace attnlab {
namespace {

using test::error_of;
using test::normal_case;
using test::same_bits;
using test::says;
using test::squares_off;

TEST_CASE("slopes are those of the paper, and where heads are no power of two those of its code") {
  CHECK(alibi_slopes(8) ==
        std::vector<double>{.5, .25, .125, .0625, .03125, .015625, .0078125, .00390625});
  CHECK(alibi_slopes(1) == std::vector<double>{.00390625});
  CHECK(alibi_slopes(3) == std::vector<double>{.0625, .00390625, .25});
  CHECK(alibi_slopes(6) == std::vector<double>{.25, .0625, .015625, .00390625, .5, .125});
  const std::vector<double> sixteen = alibi_slopes(16), twelve = alibi_slopes(12);
  for (std::size_t h = 0; h < 16; ++h) {
    CHECK(sixteen[h] == Approx(std::pow(2, -.5 * static_cast<double>(h + 1))).epsilon(1e-15));
  }
  CHECK(std::equal(twelve.begin(), twelve.begin() + 8, alibi_slopes(8).begin()));
  for (std::size_t h = 8; h < 12; ++h) CHECK(twelve[h] == sixteen[2 * (h - 8)]);
  CHECK(alibi_slopes(0).empty());
}

TEST_CASE("the bias grows with the distance from the diagonal, and hides nothing") {
  Mask mask(2, 2, 3, 4);
  mask.set_alibi({.5, .25});
  mask.set_offsets({1, -2});
  CHECK(mask.has_alibi());
  CHECK_FALSE(mask.has_additive());
  CHECK_FALSE(mask.has_elementwise());
  CHECK(mask.key_range(0, 0) == KeyRange{0, 4});
  CHECK(mask.bias<double>(0, 0, 0, 1) == 0);
  CHECK(mask.bias<double>(0, 0, 0, 3) == -1);
  CHECK(mask.bias<float>(0, 0, 2, 0) == -1.5f);
  CHECK(mask.bias<double>(0, 1, 2, 0) == -.75);
  CHECK(mask.bias<double>(1, 0, 0, 3) == -2.5);
  CHECK(mask.may_attend(1, 0, 0, 3));
}

TEST_CASE("linear biases and an additive mask add up, and only minus infinity hides") {
  Mask mask(1, 1, 1, 4);
  mask.set_alibi({2});
  constexpr double kLowest = std::numeric_limits<double>::lowest();
  mask.set_additive(Tensor<double>({4}, {-test::kInfinity, 3, test::kNan, kLowest}));
  CHECK(mask.bias<double>(0, 0, 0, 0) == -test::kInfinity);
  CHECK_FALSE(mask.may_attend(0, 0, 0, 0));
  CHECK(mask.bias<double>(0, 0, 0, 1) == 1);
  CHECK(std::isnan(mask.bias<double>(0, 0, 0, 2)));
  CHECK(mask.bias<double>(0, 0, 0, 3) == kLowest);
  CHECK(mask.bias<float>(0, 0, 0, 3) == std::numeric_limits<float>::lowest());
  CHECK(mask.may_attend(0, 0, 0, 3));
  // However steep and far: what is finite stays so.
  mask.set_alibi({1e18});
  mask.set_offset(std::numeric_limits<Index>::max());
  CHECK(mask.bias<float>(0, 0, 0, 3) == std::numeric_limits<float>::lowest());
  CHECK(std::isfinite(mask.bias<double>(0, 0, 0, 3)));
}

TEST_CASE("slopes out of place are refused by number") {
  Mask mask(1, 2, 3, 4);
  CHECK(says(error_of([&] { mask.set_alibi({1}); }), {"alibi: got 1 slopes", "2 heads"}));
  for (const double slope : {-.5, 2e18, test::kInfinity, test::kNan}) {
    CHECK(says(error_of([&] { mask.set_alibi({.5, slope}); }), {"alibi: got ", "0 to 1e18"}));
  }
}

// The same biases as an [n, m] matrix that is added.
template <class T>
void give_as_matrix(test::DrawnCase<T>& drawn, const std::vector<double>& slopes, Index offset) {
  const Index n = drawn.mask.queries(), m = drawn.mask.keys();
  Tensor<double> bias({1, 2, n, m});
  for (Index h = 0; h < 2; ++h) {
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        bias.matrix(h)(i, j) =
            -slopes[static_cast<std::size_t>(h)] * std::abs(static_cast<double>(i + offset - j));
      }
    }
  }
  drawn.mask.set_additive(bias);
}

TEST_CASE("linear biases are an additive mask that nobody wrote down") {
  const std::vector<double> slopes = {.5, .03};
  for (const Kernel kernel : {Kernel::full, Kernel::tiled}) {
    for (const Index offset : {0, 230, -40}) {
      auto lines = normal_case<double>(70, 300, 6), matrix = lines;
      lines.settings.kernel = kernel;
      lines.mask.set_offset(offset);
      lines.mask.set_alibi(slopes);
      give_as_matrix(matrix, slopes, offset);
      const auto attend = [&](const auto& drawn) {
        return scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, lines.settings,
                                  test::kAllMatrices);
      };
      const auto got = attend(lines), expected = attend(matrix);
      CHECK(test::close(*got.masked_scores, test::doubles(*expected.masked_scores), 1e-13));
      CHECK(test::close(*got.weights, test::doubles(*expected.weights), 1e-14));
      CHECK(test::close(got.output, test::doubles(expected.output), 1e-14));
      const auto grad_output = test::Numbers(5).tensor<double>(got.output.shape());
      const auto differentiate = [&](const auto& drawn) {
        return scaled_dot_product_backward(drawn.q, drawn.k, drawn.v, grad_output, drawn.mask,
                                           lines.settings);
      };
      const auto gradients = differentiate(lines), others = differentiate(matrix);
      CHECK(test::close(*gradients.grad_q, test::doubles(*others.grad_q), 1e-13));
      CHECK(test::close(*gradients.grad_k, test::doubles(*others.grad_k), 1e-13));
      CHECK(test::close(*gradients.grad_v, test::doubles(*others.grad_v), 1e-13));
    }
  }
}

TEST_CASE("asking for weights changes no bit of an output with linear biases, nor do threads") {
  auto drawn = normal_case<float>(300, 600, 20);
  drawn.mask.set_causal();
  drawn.mask.set_offset(250);
  drawn.mask.set_alibi({.5, .01});
  const auto attend = [&](const Request& want, Index threads) {
    AttentionSettings settings = drawn.settings;
    settings.threads = threads;
    return scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, settings, want);
  };
  const auto alone = attend({}, 1);
  const auto with_weights = attend({"weights"}, 3), all = attend(test::kAllMatrices, 2);
  CHECK(same_bits(alone.output, with_weights.output));
  CHECK(same_bits(alone.output, all.output));
  CHECK(same_bits(*all.weights, *with_weights.weights));
}

TEST_CASE("with linear biases the tiled kernel is as exact as the plain path on the whole") {
  double tiled_squares = 0, full_squares = 0;
  for (const Index n : {1, 7, 130}) {
    for (const Index m : {1, 9, 256, 300, 1000}) {
      for (const Index d : {1, 16, 64}) {
        for (const std::vector<double>& slopes : {std::vector<double>{.5, .25}, {.02, .001}}) {
          const auto attend = [&](auto drawn, Kernel kernel) {
            drawn.settings.kernel = kernel;
            drawn.mask.set_offset(m - n);
            drawn.mask.set_alibi(slopes);
            return scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings).output;
          };
          const auto single = normal_case<float>(n, m, d);
          const auto truth = attend(normal_case<double>(n, m, d), Kernel::full);
          tiled_squares += squares_off(attend(single, Kernel::tiled), truth);
          full_squares += squares_off(attend(single, Kernel::full), truth);
        }
      }
    }
  }
  CHECK(tiled_squares <= full_squares);
}

TEST_CASE("a diagonal however far leaves finite weights that sum to 1") {
  for (const Index offset :
       {std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min(), Index{1} << 40}) {
    for (const Kernel kernel : {Kernel::full, Kernel::tiled}) {
      for (const double slope : {.5, 1e18}) {
        auto drawn = normal_case<float>(3, 300, 4);
        drawn.settings.kernel = kernel;
        drawn.mask.set_offset(offset);
        drawn.mask.set_alibi({slope, slope});
        const auto result =
            scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings, {"weights"});
        for (Index row = 0; row < 6; ++row) {
          CHECK(result.weights->matrix(row / 3).row(row % 3).sum() == Approx(1));
        }
        CHECK(result.overflowed_rows == 0);
      }
    }
  }
}

TEST_CASE("NaN under the mask does not matter to linear biases, outside it is not lost") {
  for (const Kernel kernel : {Kernel::full, Kernel::tiled}) {
    auto drawn = normal_case<float>(70, 100, 4);
    drawn.settings.kernel = kernel;
    drawn.mask.set_causal();
    drawn.mask.set_alibi({.5, .25});
    const auto attend = [&] {
      return scaled_dot_product(drawn.q, drawn.k, drawn.v, drawn.mask, drawn.settings).output;
    };
    const auto clean = attend();
    drawn.k.data()[80 * 4] = std::numeric_limits<float>::quiet_NaN();  // no query sees it
    CHECK(same_bits(clean, attend()));
    drawn.k.data()[60 * 4] = std::numeric_limits<float>::quiet_NaN();
    const auto spoilt = attend();
    CHECK(spoilt.matrix().topRows(60) == clean.matrix().topRows(60));
    for (Index i = 60; i < 70; ++i) CHECK(std::isnan(spoilt.matrix()(i, 0)));
  }
}

}  // namespace
}  // namespace attnlab
